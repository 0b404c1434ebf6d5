/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Histograms whose bucket bounds double. Bucket i counts values from 2^(shift + i - 1) (excluded)
 * to 2^(shift + i) (included). Bucket 0 counts all smaller values, the last bucket all larger
 * values. Pure functions; the packet path counts, and readers compute quantiles.
 */
#ifndef SLUICE_HISTOGRAM_H
#define SLUICE_HISTOGRAM_H

#include "sluice.h"

/* Returns the index of the bucket for a value. buckets: number of buckets. */
static inline __u32 histogram_bucket(__u64 value, __u32 shift, __u32 buckets)
{
	__u32 bucket = 0;

	while (bucket < buckets - 1 && value > 1ULL << (shift + bucket))
		bucket++;
	return bucket;
}

/* A histogram to read. counts: the number of values in each bucket. */
struct histogram {
	const __u64 *counts;
	__u32 shift, buckets;
};

/* Stands for the upper bound of the last bucket, which has no upper bound. */
#define HISTOGRAM_UNBOUNDED (~0ULL)

/* Returns the upper bound of a bucket, or HISTOGRAM_UNBOUNDED. */
static inline __u64 histogram_bound(const struct histogram *histogram, __u32 bucket)
{
	return bucket < histogram->buckets - 1 ? 1ULL << (histogram->shift + bucket)
					       : HISTOGRAM_UNBOUNDED;
}

/* Returns the number of all values. */
static inline __u64 histogram_total(const struct histogram *histogram)
{
	__u64 total = 0;

	for (__u32 bucket = 0; bucket < histogram->buckets; bucket++)
		total += histogram->counts[bucket];
	return total;
}

/*
 * Returns the upper bound of the bucket that has quantile part / whole of the values. Returns 0 if
 * the histogram is empty.
 */
static inline __u64 histogram_part(const struct histogram *histogram, __u32 part, __u32 whole)
{
	__u64 total = histogram_total(histogram), seen = 0;
	/* divide first, because total * part could overflow */
	__u64 rank = total / whole * part + (total % whole * part + whole - 1) / whole;

	for (__u32 bucket = 0; rank && bucket < histogram->buckets; bucket++) {
		seen += histogram->counts[bucket];
		if (seen >= rank)
			return histogram_bound(histogram, bucket);
	}
	return 0;
}

/* Returns the same for a quantile per mille: 500 for the median, 1000 for the largest value. */
static inline __u64 histogram_quantile(const struct histogram *histogram, __u32 per_mille)
{
	return histogram_part(histogram, per_mille, 1000);
}

#endif
