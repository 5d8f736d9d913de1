/* Texts whose letters of ASCII are made small, for conditions that ignore case.

   Beside the large letters two characters are taken to small ones, as Unicode's simple case folding has it: the long s and
   the Kelvin sign. All others stay as they are. Conditions about other letters that have a case are found by what they
   begin with or have in them, and asked (leads.py). */

#ifndef PALIO_FOLDING_H
#define PALIO_FOLDING_H

#include "workspace.h"

/* The text so; it is the workspace's until the next one. Returns how many bytes it has, which is never more than before. */
static uint32_t fold_text(Workspace *work, const uint8_t *text, uint32_t length) {
    uint8_t *into;
    RESERVE(work->folded, (size_t)length + 1);
    into = work->folded.items;
    work->steps += length / COMPARED_MOST;
    for (const uint8_t *end = text + length; text < end; text++) {
        if (end - text >= 2 && text[0] == 0xC5 && text[1] == 0xBF) { /* U+017F */
            *into++ = 's';
            text++;
        } else if (end - text >= 3 && text[0] == 0xE2 && text[1] == 0x84 && text[2] == 0xAA) { /* U+212A */
            *into++ = 'k';
            text += 2;
        } else {
            *into++ = *text | (uint8_t)((uint8_t)(*text - 'A') < 26) << 5;
        }
    }
    return (uint32_t)(into - work->folded.items);
}

#endif
