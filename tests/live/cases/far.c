/* SPDX-License-Identifier: MIT */
void far_function(void);

void far_function(void)
{
}
