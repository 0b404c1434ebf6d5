// SPDX-License-Identifier: GPL-2.0
#include "bench.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "run.h"

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct result result_sorted(const struct result *result)
{
	struct result sorted = *result;

	qsort(sorted.figure, sorted.rounds, sizeof(*sorted.figure), double_compare);
	return sorted;
}

double result_median(const struct result *result)
{
	return result_sorted(result).figure[result->rounds / 2];
}

double result_least(const struct result *result)
{
	return result_sorted(result).figure[0];
}

/* Returns the median result of the case with this name; 0: the case was not run. */
static double median_of(const char *name, const struct result *results)
{
	for (size_t i = 0; i < bench_cases_count; i++)
		if (!strcmp(bench_cases[i].name, name) && results[i].rounds)
			return result_median(&results[i]);
	return 0;
}

/*
 * If a case has many sources, a program changes the source of each packet. Returns the cost of this
 * change in ns, which is part of the result. Returns 0 for a case with one source.
 */
static double varying_of(const struct bench_case *bench, const struct result *results)
{
	double vary = median_of(strchr(bench->source, ':') ? "vary6" : "vary", results);

	if (!strchr(bench->source, '/') || bench->subject == ON_PARSE)
		return 0;
	return (vary ? vary : median_of("vary", results)) - median_of("parse", results);
}

static void target_print(const struct bench_case *bench, double ns, double varying, double to)
{
	printf("  <= %.2f x %-9s ", bench->target, bench->against ? bench->against : "floor");
	if (ns <= bench->target * to)
		printf("holds: %.2f", ns / to);
	else if (ns - varying <= bench->target * to)
		printf("holds: %.2f without the %.0f ns of varying", (ns - varying) / to, varying);
	else
		printf("FAILS: %.2f", ns / to);
	if (ns - varying > bench->target * to && varying)
		printf(", %.2f without varying", (ns - varying) / to);
}

static void ratio_print(double ratio)
{
	if (ratio)
		printf(" %7.2f", ratio);
	else
		printf(" %7s", "");
}

static void case_print(const struct bench_case *bench, const struct result *result,
		       const struct result *results)
{
	double ns = result_median(result), floor = median_of("floor", results);
	double varying = varying_of(bench, results);
	double to = bench->against ? median_of(bench->against, results) : floor;
	double naive = bench->against && !strncmp(bench->against, "naive", 5) ? to : 0;

	printf("%-16s %6.0f %6.0f", bench->name, ns, result_least(result));
	ratio_print(ns / floor);
	ratio_print(varying ? (ns - varying) / floor : 0);
	ratio_print(naive ? ns / naive : 0);
	if (bench->target && bench->against && to)
		target_print(bench, ns, 0, to);
	else if (bench->target && to)
		target_print(bench, ns, varying, to);
	if (result->as_meant < 0.99)
		printf("  BUT only %.1f%% were judged as meant", 100 * result->as_meant);
	printf("\n");
}

static const char notes[] =
	"NS: ns for a packet on one CPU, the median of the rounds, in whole ns as the kernel "
	"reports "
	"it.\n"
	"NET: x FLOOR without the cost of changing the source of each packet (vary - parse), if a "
	"case\n"
	"does that. NS and x FLOOR include that cost.\n"
	"x NAIVE: ratio to naive_64k or naive_1m, the textbook per-CPU bucket with as many known "
	"sources.\n";

void report_cases(const struct result *results)
{
	printf("%-16s %6s %6s %7s %7s %7s  %s\n", "CASE", "NS", "LEAST", "x FLOOR", "NET *",
	       "x NAIVE", "TARGET");
	for (size_t i = 0; i < bench_cases_count; i++)
		if (results[i].rounds)
			case_print(&bench_cases[i], &results[i], results);
	fputs(notes, stdout);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static json_t *cases_json(const struct result *results)
{
	double floor = median_of("floor", results);
	json_t *list = json_array();

	for (size_t i = 0; i < bench_cases_count; i++) {
		double ns = results[i].rounds ? result_median(&results[i]) : 0;

		if (results[i].rounds)
			json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "name",
							      bench_cases[i].name, "ns", ns,
							      "floor_ratio", ns / floor));
	}
	return list;
}

static json_t *veth_json(const struct veth_result *veth, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		if (veth[i].mpps.rounds)
			json_array_append_new(list,
					      json_pack("{s:s, s:f}", "name", veth[i].name, "mpps",
							result_median(&veth[i].mpps)));
	return list;
}

int report_json(const char *path, const struct result *results, const struct veth_result *veth,
		size_t veth_count)
{
	struct utsname kernel;
	json_t *json;
	int err;

	uname(&kernel);
	json = json_pack("{s:s, s:i, s:o, s:o}", "kernel", kernel.release, "cpus", run_cpus(),
			 "cases", cases_json(results), "veth", veth_json(veth, veth_count));
	err = json ? json_dump_file(json, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : -1;
	json_decref(json);
	return err ? error_add(EIO, "bench", NULL, "cannot write %s", path) : 0;
}
