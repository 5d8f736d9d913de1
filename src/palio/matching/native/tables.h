/* Tables: questions about texts that a finite automaton answers, one look-up a character.

   Behind the places of its two branches a node has how many states and classes of characters there are; where
   each class begins, as code points; the class of each ASCII character; and for each state where each class
   leads, and behind that what the state says: 1 if it accepts, 2 if no further character can change that.
   palio.matching.programs writes it; all that is no word has two bytes. Characters are read as programs.h does,
   which has this file in it. */

#ifndef PALIO_TABLES_H
#define PALIO_TABLES_H

#include "values.h"

#define NODE_TABLE 16

static uint32_t load_half(const uint8_t *at) {
    uint16_t half;
    memcpy(&half, at, 2);
    return half;
}

static int table_holds(const uint8_t *node, const uint8_t *text, uint32_t length, uint64_t *steps) {
    uint32_t classes = load_word(node + 16), state = 0;
    const uint8_t *cuts = node + 20, *ascii = cuts + 4 * (size_t)classes, *rows = ascii + 256, *end = text + length;
    size_t width = 2 * ((size_t)classes + 1);
    for (;;) {
        const uint8_t *row = rows + width * state;
        uint32_t says = load_half(row + width - 2), low = 0, high = classes, character;
        if (says & 2 || text >= end) return (int)(says & 1);
        ++*steps;
        if (*text < 0x80) {
            low = load_half(ascii + 2 * *text++);
        } else {
            character = next_character(&text, end);
            while (high - low > 1) {
                uint32_t middle = (low + high) / 2;
                if (load_word(cuts + 4 * (size_t)middle) <= character) low = middle;
                else high = middle;
            }
        }
        state = load_half(row + 2 * (size_t)low);
    }
}

#endif
