/* Numbers in ascending order, each with whose it is: ends of ranges, and what the events of a tile have.

   The library's sort calls back for every comparison, and half of its guesses about the outcome are wrong. Here runs of a
   few are sorted by insertion and then merged without a branch. */

#ifndef PALIO_SORTING_H
#define PALIO_SORTING_H

#include "memory.h"

#define RUN 8u

typedef struct { double number; uint32_t owner; } Placed;

/* NaN comes first. */
INLINE int comes_before(const Placed *left, const Placed *right) {
    return (left->number < right->number) | ((left->number != left->number) & (right->number == right->number));
}

/* Sort in place; there is room for as many more behind them. */
static void sort_placed(Placed *placed, uint32_t count) {
    Placed *from = placed, *into = placed + count;
    for (uint32_t start = 0; start < count; start += RUN)
        for (uint32_t i = start + 1; i < count && i < start + RUN; i++) {
            const Placed one = placed[i];
            uint32_t j = i;
            for (; j > start && comes_before(&one, placed + j - 1); j--) placed[j] = placed[j - 1];
            placed[j] = one;
        }
    for (uint32_t run = RUN; run < count; run *= 2) {
        Placed *out = into;
        for (uint32_t start = 0; start < count; start += 2 * run) {
            const Placed *left = from + start, *middle = from + (count - start < run ? count : start + run);
            const Placed *right = middle, *end = from + (count - start < 2 * run ? count : start + 2 * run);
            while (left < middle && right < end) {
                const int take_right = comes_before(right, left);
                *out++ = take_right ? *right : *left;
                right += take_right;
                left += !take_right;
            }
            while (left < middle) *out++ = *left++;
            while (right < end) *out++ = *right++;
        }
        into = from;
        from = out - count;
    }
    if (from != placed) memcpy(placed, from, sizeof *placed * count);
}

#endif
