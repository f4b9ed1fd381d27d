/* Regions of a v8-M memory protection unit for spans of any size: granules, sorted, and none in two regions. */
#ifndef BYTEWRIGHT_SECOND_CORE_REGIONS_H
#define BYTEWRIGHT_SECOND_CORE_REGIONS_H

#include <stdint.h>

enum { GRANULE_BYTES = 32 };
/* The low bits of RBAR: AP and XN. */
enum { MAY_WRITE = 3, MAY_EXECUTE = 6, MAY_READ = 7 };

struct region {
    uint32_t first;
    uint32_t end;
    uint32_t rights;
};

static struct region region_of(uint32_t first, uint32_t size_bytes, uint32_t rights)
{
    const uint32_t end = size_bytes == 0 ? first : first + size_bytes + GRANULE_BYTES - 1u;
    const struct region region = {first & ~(GRANULE_BYTES - 1u), end & ~(GRANULE_BYTES - 1u), rights};

    return region;
}

static int comes_after(struct region region, struct region other)
{
    return region.first > other.first || (region.first == other.first && region.end > other.end);
}

/* Puts a region where it belongs behind the fixed ones: sorted by its first granule, then by its end. */
static uint32_t insert_region(struct region *regions, uint32_t num_fixed, uint32_t num_regions, struct region added)
{
    uint32_t place = num_regions;

    if (added.first == added.end) {
        return num_regions;
    }
    while (place > num_fixed && comes_after(regions[place - 1], added)) {
        regions[place] = regions[place - 1];
        --place;
    }
    regions[place] = added;
    return num_regions + 1;
}

/* Regions may not overlap: where two spans share a granule, the one that may be written has it. Spans have no byte in
 * common, so that no two share more than one.
 */
static uint32_t separate(struct region *regions, uint32_t num_fixed, uint32_t num_regions)
{
    uint32_t num_kept = num_fixed;

    for (uint32_t index = num_fixed; index < num_regions; ++index) {
        struct region region = regions[index];

        if (num_kept > num_fixed && regions[num_kept - 1].end > region.first) {
            if (regions[num_kept - 1].rights == MAY_READ && region.rights == MAY_WRITE) {
                regions[num_kept - 1].end = region.first;
                num_kept -= regions[num_kept - 1].first == regions[num_kept - 1].end;
            } else {
                region.first = regions[num_kept - 1].end;
            }
        }
        if (region.first < region.end) {
            regions[num_kept++] = region;
        }
    }
    return num_kept;
}

#endif
