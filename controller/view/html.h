/* SPDX-License-Identifier: Apache-2.0 */
/* html: the frame of the report's page, linked into the program from its sources
 * (html/page.html, html/page.css, html/page.js). */
#ifndef CTL_HTML_H
#define CTL_HTML_H

#include <jansson.h>
#include <stdio.h>

/* The frame up to the place of the data, with style, script and policy in it; and what follows. WEFT_E_IO. */
int ctl_html_begin (FILE *out);
int ctl_html_end (FILE *out);
/* A value as it may stand in a script element: ASCII, none of < > & (P2 of page.h). WEFT_E_IO. */
int ctl_html_json (FILE *out, const json_t *json);

#endif
