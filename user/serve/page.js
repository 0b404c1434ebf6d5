// SPDX-License-Identifier: GPL-2.0
// The page of sluice-serve: reads documents of /api/v1 once a second, and draws them with SVG. All
// texts of documents are inserted as text, never as HTML. It uses no library of charts: Debian's
// dygraphs has 131 kB, and the whole page must be smaller than 80 kB.
"use strict";

const MINUTES = 600, HOURS = 43200; // seconds of history: 10 minutes, 12 hours
const STALE_MS = 4000, TIMEOUT_MS = 10000;
const HEIGHT = 170, LEFT = 44, BOTTOM = 20, TOP = 8, RIGHT = 8; // of a chart, in pixels

const $ = id => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

// --- Elements -------------------------------------------------------------------------------------

function el(name, properties = {}, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(properties))
		if (key in made)
			made[key] = value;
		else
			made.setAttribute(key, value);
	made.append(...children);
	return made;
}

function svg(name, attributes = {}, ...children) {
	const made = document.createElementNS(SVG, name);
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	made.append(...children);
	return made;
}

// Replaces the rows of a table, but not if nothing has changed, so that a selection stays.
function fill(table, head, rows) {
	const text = JSON.stringify([head, rows.map(row => row.key)]);
	if (table.dataset.text === text)
		return;
	const focused = table.contains(document.activeElement) && document.activeElement.textContent;
	table.dataset.text = text;
	table.replaceChildren(
		el("thead", {}, el("tr", {}, ...head.map(name => el("th", {scope: "col", className: name.startsWith("#") ? "n" : ""}, name.replace("#", ""))))),
		el("tbody", {}, ...rows.map(row => el("tr", {className: row.kind || ""}, ...row.cells.map(cell)))));
	if (focused)
		[...table.querySelectorAll("button")].find(button => button.textContent === focused)?.focus();
}

const cell = value => value instanceof Node && value.tagName === "TD" ? value : el("td", {}, value);
const right = (value, className = "") => el("td", {className: `n ${className}`}, value);

// --- Numbers --------------------------------------------------------------------------------------

function short(number) {
	const units = ["", "k", "M", "G", "T"];
	let unit = 0;
	while (Math.abs(number) >= 999.5 && unit < units.length - 1) {
		number /= 1000;
		unit++;
	}
	return (number && Math.abs(number) < 9.95 && (unit || number % 1) ? number.toFixed(1) : number.toFixed(0)) + units[unit];
}

function seconds(ms) {
	const s = Math.ceil(ms / 1000);
	return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} d`;
}

const clock = time => new Date(time * 1000).toLocaleTimeString([], {hour12: false});

// --- The server -----------------------------------------------------------------------------------

const state = {gate: "", listed: false, answered: 0, refresh: -1, rules: new Map(), generation: -1, token: ""};
try {
	state.token = sessionStorage.getItem("token") || "";
} catch (error) { /* the browser forbids storage: the token is asked for again */ }

class Refused extends Error {}

async function ask(path, parameters = {}) {
	const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value));
	const headers = state.token ? {Authorization: `Bearer ${state.token}`} : {};
	const answer = await fetch(`${path}${String(query) && `?${query}`}`, {headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS)});
	if (answer.status === 401)
		$("login").hidden = false;
	const body = await answer.json();
	if (body.error)
		throw new Refused([body.error.object, body.error.text].filter(Boolean).join(": ") + (body.error.hint ? `; ${body.error.hint}` : ""));
	return body;
}

const of_gate = (more = {}) => ({gate: state.gate, ...more});

function trouble(text) {
	$("trouble").hidden = !text;
	$("trouble").textContent = text;
}

// --- History --------------------------------------------------------------------------------------

// Samples of the last 10 minutes, and means of a minute for the last 12 hours. Older ones are dropped.
const history = {minutes: [], hours: [], minute: []};

function mean(samples) {
	const sum = {};
	for (const sample of samples)
		for (const [key, value] of Object.entries(sample.values))
			sum[key] = (sum[key] || 0) + value / samples.length;
	return {at: samples[samples.length - 1].at, values: sum};
}

// Drops samples until the oldest is at most `span` seconds from `at`, also if the clock was set back.
function drop_old(samples, at, span) {
	while (samples.length && Math.abs(at - samples[0].at) >= span)
		samples.shift();
}

function remember(sample) {
	if (history.minute.length && Math.abs(sample.at - history.minute[0].at) >= 60) {
		history.hours.push(mean(history.minute));
		history.minute = [];
	}
	history.minute.push(sample);
	history.minutes.push(sample);
	drop_old(history.minutes, sample.at, MINUTES);
	drop_old(history.hours, sample.at, HOURS);
}

function forget() {
	history.minutes = [];
	history.hours = [];
	history.minute = [];
	state.refresh = state.generation = -1;
	events.shown = [];
	events.since = "";
	events.stop?.abort();
	events_draw();
}

function sample_of(live) {
	const values = {
		passed_bits: live.passed.bits, dropped_bits: live.dropped.bits, new_keys: live.pressure.new_keys,
		flooded: live.pressure.cpus_flooded, in_use: live.table.in_use, max: live.table.max, limited: live.table.limited,
		blocked: live.table.blocked, passed: live.passed.packets, dropped: live.dropped.packets,
	};
	for (const [reason, rate] of Object.entries(live.reasons))
		values[`reason ${reason}`] = rate.packets;
	return {at: live.at, values};
}

// --- Charts ---------------------------------------------------------------------------------------

// Reasons to drop are hatched, so that they differ from reasons to pass without colour.
const PASS = ["within-limit", "no-limit", "newcomer", "allowed", "no-rule", "not-ip", "short", "bad-header"];
const is_pass = reason => PASS.includes(reason);

function hatch(id, color, angle) {
	return svg("pattern", {id, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})`},
		svg("rect", {width: 7, height: 7, fill: color, "fill-opacity": .55}),
		svg("rect", {width: 2.5, height: 7, fill: color}));
}

const charts = [
	{id: "packets", title: "Packets per second, by reason", stacked: true, series: [], reasons: true},
	{id: "bits", title: "Bits per second", series: [["passed_bits", "passed", "--c0"], ["dropped_bits", "dropped", "--d0", "6 3"]]},
	{id: "new", title: "Packets of new sources per second", series: [["new_keys", "new sources", "--c0"]], band: ["flooded", "CPUs in flood", "--d1", "hatch"]},
	{id: "table", title: "States in the table", series: [["in_use", "states", "--c2"], ["max", "room", "--c3", "2 3"]]},
	{id: "limited", title: "States that refuse packets", series: [["limited", "over their limit", "--d0"], ["blocked", "blocked", "--d5", "6 3"]]},
];

const samples_shown = () => $("span").value === "hours" ? history.hours : history.minutes;
const color = name => `var(${name})`;

// The reasons that occur in the samples, passed ones first. A reason always has the same colour.
function reasons_in(samples) {
	const found = new Set(), signs = {true: 0, false: 0};
	for (const sample of samples)
		for (const [key, value] of Object.entries(sample.values))
			if (value > 0)
				found.add(key);
	const known = samples.length ? Object.keys(samples[samples.length - 1].values).filter(key => key.startsWith("reason ")) : [];
	return known.sort((a, b) => is_pass(b.slice(7)) - is_pass(a.slice(7))).map(key => {
		const name = key.slice(7), sign = signs[is_pass(name)]++ % 8;
		return is_pass(name) ? [key, `pass ${name}`, `--c${sign}`] : [key, `drop ${name}`, `--d${sign}`, "hatch"];
	}).filter(([key]) => found.has(key));
}

function chart_make(chart) {
	chart.cursor = -1;
	chart.svg = svg("svg", {class: "chart", role: "img", tabindex: 0, "aria-label": `${chart.title}. Arrow keys select a time; the table has all numbers.`});
	chart.at = el("p", {className: "at"});
	chart.legend = el("ul", {className: "legend"});
	chart.table = el("table");
	chart.details = el("details", {}, el("summary", {}, "Table"), el("div", {className: "scroll", tabIndex: 0}, chart.table));
	chart.details.addEventListener("toggle", () => chart_table(chart));
	chart.svg.addEventListener("pointermove", event => {
		const box = chart.svg.getBoundingClientRect();
		chart_point(chart, index_at((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)));
	});
	chart.svg.addEventListener("pointerleave", () => chart_point(chart, -1));
	chart.svg.addEventListener("keydown", event => {
		const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
		if (!step)
			return;
		event.preventDefault();
		chart_point(chart, (chart.cursor < 0 ? chart_length() : chart.cursor) + step);
	});
	$("charts").append(el("figure", {}, el("figcaption", {}, chart.title), chart.svg, chart.at, chart.legend, chart.details));
}

const chart_length = () => samples_shown().length;

// Returns the part of the width of a chart, from 0 to 1, at which a sample is drawn.
function part_of(samples, sample) {
	const first = samples[0].at, span = samples[samples.length - 1].at - first;
	return span > 0 ? Math.max(0, Math.min(1, (sample.at - first) / span)) : 0;
}

// Returns the index of the first sample at this part of the width, or right of it.
function index_at(part) {
	const samples = samples_shown(), found = samples.findIndex(sample => part_of(samples, sample) >= part);
	return found < 0 ? samples.length - 1 : found;
}

function chart_point(chart, index) {
	chart.cursor = index < 0 ? -1 : Math.min(index, chart_length() - 1);
	chart_draw(chart);
}

// A path of a line, or of the area between two lines.
function path_of(samples, x, y, high, low) {
	const line = samples.map((sample, i) => `${x(i).toFixed(1)},${y(high(sample)).toFixed(1)}`);
	if (!low)
		return `M${line.join("L")}`;
	const back = samples.map((sample, i) => `${x(i).toFixed(1)},${y(low(sample)).toFixed(1)}`).reverse();
	return `M${line.join("L")}L${back.join("L")}Z`;
}

// A round number at or above `most`, for the top of the axis.
function ceiling(most) {
	const power = 10 ** Math.floor(Math.log10(most || 1));
	return [1, 2, 5, 10].map(step => step * power).find(step => step >= most) || 1;
}

// The parts of a chart behind its series: hatches, lines of the grid, and its numbers.
function chart_ground(chart, signs, width, top, y) {
	const parts = [svg("defs", {}, ...signs.map(([, , name], i) => hatch(`${chart.id}-${i}`, color(name), 45 + 30 * i)))];
	for (const part of [0, .5, 1])
		parts.push(svg("line", {class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(top * part), y2: y(top * part)}),
			svg("text", {x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end"}, short(top * part)));
	return parts;
}

// Bars behind a line, at the times at which the value of `band` is not 0.
function chart_band(chart, samples, x, sign) {
	const half = Math.max(1, (x(1) - x(0)) / 2);
	return samples.flatMap((sample, i) => sample.values[chart.band[0]] ? [svg("rect", {x: x(i) - half, width: 2 * half, y: TOP, height: HEIGHT - BOTTOM - TOP, fill: `url(#${chart.id}-${sign})`, "fill-opacity": .6})] : []);
}

function chart_draw(chart) {
	const samples = samples_shown(), count = samples.length, width = Math.max(240, chart.svg.clientWidth);
	const series = chart.reasons ? reasons_in(samples) : chart.series, signs = chart.band ? [...series, chart.band] : series;
	const sum = (sample, upto) => series.slice(0, upto).reduce((total, [key]) => total + (sample.values[key] || 0), 0);
	const top = ceiling(Math.max(1, ...samples.map(sample => chart.stacked ? sum(sample, series.length) : Math.max(...series.map(([key]) => sample.values[key] || 0)))));
	const x = i => LEFT + part_of(samples, samples[i]) * (width - LEFT - RIGHT);
	const y = value => HEIGHT - BOTTOM - value / top * (HEIGHT - BOTTOM - TOP);
	const parts = chart_ground(chart, signs, width, top, y);
	const at = chart.cursor >= 0 && chart.cursor < count ? chart.cursor : count - 1;
	if (count > 1) {
		parts.push(svg("text", {x: LEFT, y: HEIGHT - 5}, clock(samples[0].at)), svg("text", {x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end"}, clock(samples[count - 1].at)));
		if (chart.band)
			parts.push(...chart_band(chart, samples, x, series.length));
		series.forEach(([key, , name, style], i) => {
			if (chart.stacked)
				parts.push(svg("path", {d: path_of(samples, x, y, sample => sum(sample, i + 1), sample => sum(sample, i)), fill: style ? `url(#${chart.id}-${i})` : color(name), stroke: color(name), "stroke-width": .7}));
			else
				parts.push(svg("path", {d: path_of(samples, x, y, sample => sample.values[key] || 0), fill: "none", stroke: color(name), "stroke-width": 2, "stroke-dasharray": style || "none"}));
		});
		if (chart.cursor >= 0)
			parts.push(svg("line", {class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM}));
	} else {
		parts.push(svg("text", {x: width / 2, y: HEIGHT / 2, "text-anchor": "middle"}, $("span").value === "hours" ? "the first minute is not over" : "waiting for the second reading"));
	}
	chart.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
	chart.svg.replaceChildren(...parts);
	chart.at.textContent = count ? `${chart.cursor >= 0 ? "At" : "Now,"} ${clock(samples[at].at)}` : "";
	const value = count ? ([key]) => short(samples[at].values[key] || 0) : () => "-";
	chart.legend.replaceChildren(...signs.map((entry, i) => el("li", {}, legend_sign(chart, entry, i), `${entry[1]} ${value(entry)}`)));
	if (!signs.length)
		chart.legend.replaceChildren(el("li", {className: "soft"}, "no packets"));
	chart.now = signs;
	chart_table(chart);
}

function legend_sign(chart, [, , name, style], i) {
	const sign = svg("svg", {viewBox: "0 0 22 16", "aria-hidden": "true"});
	if (chart.stacked || style === "hatch")
		sign.append(svg("rect", {width: 22, height: 16, fill: style ? `url(#${chart.id}-${i})` : color(name), stroke: color(name)}));
	else
		sign.append(svg("line", {x1: 0, x2: 22, y1: 8, y2: 8, stroke: color(name), "stroke-width": 3, "stroke-dasharray": style || "none"}));
	return sign;
}

// The table behind a chart: at most 60 rows, the newest first.
function chart_table(chart) {
	if (!chart.details.open || !chart.now)
		return;
	const samples = samples_shown(), step = Math.max(1, Math.ceil(samples.length / 60));
	const rows = samples.filter((_, i) => (samples.length - 1 - i) % step === 0).reverse();
	fill(chart.table, ["Time", ...chart.now.map(([, label]) => `#${label}`)],
		rows.map(sample => ({key: sample.at, cells: [clock(sample.at), ...chart.now.map(([key]) => right(short(sample.values[key] || 0)))]})));
}

// --- Numbers of now -------------------------------------------------------------------------------

function numbers(live) {
	const full = live.table.max ? Math.round(100 * live.table.in_use / live.table.max) : 0;
	const rate = number => live.span_ms === null ? "-" : short(number);
	const shown = [
		[rate(live.passed.packets), "packets passed/s"], [rate(live.dropped.packets), "packets dropped/s"],
		[rate(live.passed.bits), "bit passed/s"], [rate(live.dropped.bits), "bit dropped/s"],
		[rate(live.pressure.new_keys), "of new sources/s"], [short(live.table.limited), "states over their limit"],
		[short(live.table.blocked), "states blocked"], [`${full} %`, `of the table used, ${short(live.table.in_use)} of ${short(live.table.max)}`],
	];
	$("numbers").replaceChildren(...shown.map(([value, label]) => el("div", {className: "number"}, el("b", {}, value), el("span", {}, label))));
	const flooded = live.pressure.cpus_flooded;
	$("flood").className = flooded ? "mark flood" : "mark";
	$("flood").textContent = flooded ? `\u26a0 flood on ${flooded} of ${live.pressure.cpus} CPUs` : "no flood";
}

// --- Sources --------------------------------------------------------------------------------------

function level_bar(source) {
	if (source.limit === null)
		return el("span", {className: "soft"}, "no limit");
	const part = Math.max(0, Math.min(1, source.level));
	const label = source.blocked_ms ? `blocked for ${seconds(source.blocked_ms)}` : source.refuses ? `refuses${source.retry_after_ms ? ` for ${seconds(source.retry_after_ms)}` : ""}` : `${Math.round(100 * part)} %`;
	return el("span", {}, svg("svg", {class: part < .2 ? "level low" : "level", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true"},
		svg("rect", {class: "fill", width: (100 * part).toFixed(1), height: 10}), svg("rect", {class: "back", x: .5, y: .5, width: 99, height: 9})),
	el("span", {className: source.refuses && !source.observes ? "bad" : ""}, ` ${source.observes ? "(only observed) " : ""}${label}`));
}

function sources(live) {
	$("sources-note").className = live.refused ? "bad" : "";
	$("sources-note").textContent = live.refused ? live.refused : live.matching > live.sources.length ? `${live.sources.length} of ${short(live.matching)} sources` : live.sources.length ? "" : live.known ? "No source matches." : "No source has a bucket.";
	fill($("sources"), ["Source", "Policy", "#Pass/s", "#Drop/s", "#Would drop/s", "#Bit/s", "Limit", "Level left"], live.sources.map(source => {
		const button = el("button", {type: "button", className: "address", title: "Show the verdict"}, source.address);
		button.addEventListener("click", () => {
			$("ask-address").value = source.address.replace(/\/.*/, "");
			verdict();
		});
		return {key: JSON.stringify(source), cells: [el("td", {}, button), source.policy, right(short(source.passed.packets)), right(short(source.dropped.packets), source.dropped.packets ? "bad" : ""),
			right(short(source.would_drop.packets)), right(short(source.passed.bits + source.dropped.bits)), source.limit || "-", el("td", {}, level_bar(source))]};
	}));
}

// --- Policies and devices -------------------------------------------------------------------------

// The words of a limit of a rules document, such as "rate 10kpps burst 20000".
function limit_words(limit) {
	const usual = {match: "any", key: "src", start: "full"};
	return Object.entries(limit).filter(([key, value]) => !["name", "action"].includes(key) && usual[key] !== value)
		.map(([key, value]) => `${key} ${value === true ? "yes" : value}`).join(" ");
}

function policies(live) {
	const rows = [];
	for (const policy of live.policies) {
		const rule = state.rules.get(policy.policy);
		rows.push({key: JSON.stringify([policy, state.generation]), cells: [policy.policy, rule?.newcomers ? `new sources: ${limit_words(rule.newcomers)}` : "", "", right(short(policy.passed.packets)), right(short(policy.dropped.packets), policy.dropped.packets ? "bad" : ""), right("")]});
		for (const limit of policy.limits) {
			const words = rule?.limits.find(one => one.name === limit.name);
			rows.push({kind: "limit", key: JSON.stringify([limit, state.generation]), cells: [`limit ${limit.name}`, words ? limit_words(words) : "", limit.action, right(""),
				right(short(limit.refused.packets), limit.refused.packets ? "bad" : ""), right(short(limit.refused_total.packets))]});
		}
	}
	$("policies-note").textContent = live.policy_count > live.policies.length ? `The first ${live.policies.length} of ${live.policy_count}.` : "";
	fill($("policies"), ["Policy", "Words", "Action", "#Pass/s", "#Drop or refuse/s", "#Refused in total"], rows);
}

function devices(live) {
	const all = live.attachments || [];
	$("devices-note").textContent = live.attachments === null ? "The devices cannot be read." : !all.length ? "No device is attached." :
		live.attachments_published_ms === null ? "" : `As written ${seconds(live.attachments_published_ms)} ago by the last command that attached.`;
	fill($("devices"), ["Device", "Hook", "Mode", "State", "Network namespace"], all.map(device => ({
		key: JSON.stringify(device), cells: [device.device, device.hook, device.mode,
			el("td", {className: device.state === "attached" ? "good" : "bad"}, device.state === "attached" ? "\u2713 filtered" : `\u2717 ${device.gone} gone`), device.netns || "-"]})));
}

// --- Findings, durations, verdict -----------------------------------------------------------------

async function findings() {
	const found = await ask("api/v1/doctor", of_gate());
	$("findings").replaceChildren(...found.map(finding => el("li", {},
		el("b", {className: finding.severity === "wrong" ? "bad" : ""}, finding.severity === "wrong" ? "\u2717 wrong: " : "advice: "),
		`${finding.object}: ${finding.text} [${finding.id}] `, el("code", {}, finding.advice))));
	if (!found.length)
		$("findings").replaceChildren(el("li", {className: "good"}, "\u2713 nothing is wrong"));
}

async function durations() {
	const timed = (await ask("api/v1/stats", of_gate())).durations;
	if (!timed)
		return;
	const ns = value => value === null ? "-" : value < 1000 ? `${value} ns` : `${short(value / 1000)} us`;
	$("durations-note").textContent = `Each CPU times one packet in ${timed.one_in}.`;
	fill($("durations"), ["Verdict", "#Timed", "#Half are within", "#99 % are within", "#Longest"], Object.entries(timed).filter(([, one]) => one && typeof one === "object" && "timed" in one)
		.map(([verdict, one]) => ({key: JSON.stringify(one), cells: [verdict, right(short(one.timed)), right(ns(one.p50_ns)), right(ns(one.p99_ns)), right(ns(one.longest_ns))]})));
}

// Reads what is read less often than the rates.
const details = async () => state.gate && Promise.allSettled([findings(), durations()]);

async function rules() {
	const shown = await ask("api/v1/limits", of_gate());
	state.rules = new Map(shown.rules.map(rule => [rule.prefix, rule]));
}

async function verdict() {
	const address = $("ask-address").value.trim(), box = $("verdict");
	try {
		const found = await ask("api/v1/check", of_gate({address, proto: $("ask-proto").value, port: $("ask-port").value}));
		const passes = found.verdict === "pass";
		const why = found.prefix === null ? "no rule covers it" : `decided by ${found.policy === "allow" || found.policy === "deny" ? `${found.policy} ` : ""}${found.prefix}`;
		const table = el("table");
		fill(table, ["Limit", "Words", "Decision", "#Left", "#Retry after", "Inherited from"], found.limits.map(limit => ({key: JSON.stringify(limit), cells: [limit.name,
			[limit.window ? `window ${limit.window}` : `rate ${short(limit.rate)} ${limit.unit}/s`, "burst" in limit ? `burst ${short(limit.burst)}` : "", limit.match === "any" ? "" : `match ${limit.match}`, `action ${limit.action}`].filter(Boolean).join(", "),
			el("td", {className: limit.allowed === false ? "bad" : ""}, limit.matches === false ? "does not match" : limit.allowed === false ? `\u2717 ${limit.reason || "refuses"}` : "\u2713 passes"),
			right("remaining" in limit ? `${limit.remaining} ${limit.unit || ""}` : "-"), right(limit.retry_after_ms ? seconds(limit.retry_after_ms) : "-"), limit.inherited_from || "-"]})));
		box.replaceChildren(el("p", {}, el("b", {className: passes ? "good" : "bad"}, passes ? "\u2713 pass" : "\u2717 drop"), ` ${found.address}: ${found.reason}; ${why}`));
		if (found.limits.length)
			box.append(el("div", {className: "wide"}, table));
	} catch (error) {
		box.replaceChildren(el("p", {className: "bad"}, error.message));
	}
}

// --- Events ---------------------------------------------------------------------------------------

const EVENTS = 200; // events that are shown
const SIGNS = {begin: "\u25b6 begins", end: "\u25a0 ends", instant: "\u2022"};
const events = {shown: [], since: "", stop: null};

function events_draw() {
	fill($("events"), ["Time", "Kind", "", "Object", "What has happened"], events.shown.map(event => ({key: `${event.id} ${event.phase}`, cells: [
		new Date(event.time).toLocaleTimeString([], {hour12: false}), event.kind, SIGNS[event.phase] || event.phase, event.source || event.device || event.policy || "", event.text]})));
}

// Handles a message of a stream: lines such as "id: 7" and "data: {...}".
function event_take(message) {
	const fields = {};
	for (const line of message.split("\n"))
		if (line.includes(": "))
			fields[line.slice(0, line.indexOf(": "))] = line.slice(line.indexOf(": ") + 2);
	if (fields.event === "origin")
		$("events-note").textContent = JSON.parse(fields.data).origin === "unit" ? "From 'sluice events', which runs for this gate." :
			"Read from the maps once a second. If sluice-events@GATE runs, sources that exceed a limit for less than a second are seen as well.";
	else if (fields.event === "gap")
		events.shown.unshift({id: "gap", phase: "instant", time: Date.now(), kind: "lost", text: "events were left out, because the connection was interrupted"});
	else if (fields.data)
		events.shown.unshift(JSON.parse(fields.data));
	events.since = fields.id || events.since;
	events.shown.length = Math.min(events.shown.length, EVENTS);
}

async function events_follow() {
	if (!state.gate)
		return;
	events.stop = new AbortController();
	const headers = state.token ? {Authorization: `Bearer ${state.token}`} : {};
	const query = new URLSearchParams({gate: state.gate, ...(events.since ? {since: events.since} : {})});
	const answer = await fetch(`api/v1/events?${query}`, {headers, cache: "no-store", signal: events.stop.signal});
	if (!answer.ok)
		return;
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	for (let text = "";;) {
		const {value, done} = await reader.read();
		if (done)
			return;
		const messages = (text + value).split("\n\n");
		text = messages.pop();
		messages.forEach(event_take);
		events_draw();
	}
}

// --- The loop -------------------------------------------------------------------------------------

function gate_show(name) {
	state.gate = name;
	forget();
	details();
}

async function gates() {
	const known = await ask("api/v1/gates");
	$("version").textContent = `version ${known.version}`;
	if (!known.gates.includes(state.gate))
		gate_show(known.gates.includes("main") ? "main" : known.gates[0] || "");
	$("gate").replaceChildren(...known.gates.map(name => el("option", {value: name, selected: name === state.gate}, name)),
		...known.unreadable.map(name => el("option", {disabled: true}, `${name} (cannot be read)`)));
	if (!known.gates.length)
		throw new Refused(known.unreadable.length ? `gate ${known.unreadable.join(", ")} cannot be read by the user of sluice-serve` : "there is no gate; to make one: 'sluice attach DEV'");
	state.listed = true;
}

// Reads the rates. If the server refuses the prefix of the filter, reads them without the filter.
async function rates() {
	const words = of_gate({top: $("top").value, sort: $("sort").value}), within = $("within").value.trim();
	try {
		return await ask("api/v1/live", {...words, within});
	} catch (error) {
		if (!within || !(error instanceof Refused))
			throw error;
		return {...await ask("api/v1/live", words), refused: error.message};
	}
}

async function second() {
	if (!state.listed)
		await gates();
	const live = await rates();
	if (live.gate !== state.gate)
		return; // the user has selected another gate
	state.answered = performance.now();
	trouble("");
	$("login").hidden = true;
	if (live.generation !== state.generation) {
		await rules();
		state.generation = live.generation;
	}
	numbers(live);
	sources(live);
	policies(live);
	devices(live);
	if (live.refresh !== state.refresh && live.span_ms !== null)
		remember(sample_of(live));
	state.refresh = live.refresh;
	if (!document.hidden)
		charts.forEach(chart_draw);
}

// Calls a function again and again. One failure does not end it.
async function every(ms, call) {
	for (;;) {
		try {
			await call();
		} catch (error) {
			if (call === second) {
				trouble(error instanceof Refused ? error.message : "The server does not answer.");
				state.listed &&= !(error instanceof Refused); // the gate may have been removed
			}
		}
		await new Promise(resolve => setTimeout(resolve, document.hidden ? 5 * ms : ms));
	}
}

function age() {
	const ms = performance.now() - state.answered, stale = !state.answered || ms > STALE_MS;
	$("age").className = stale && performance.now() > STALE_MS ? "gone" : "";
	$("age").textContent = state.answered ? `${stale ? "server gone: " : ""}last update ${Math.floor(ms / 1000)} s ago` : "no answer yet";
}

charts.forEach(chart_make);
charts.forEach(chart_draw);
$("gate").addEventListener("change", () => gate_show($("gate").value));
$("span").addEventListener("change", () => charts.forEach(chart_draw));
$("filter").addEventListener("submit", event => event.preventDefault());
$("ask").addEventListener("submit", event => {
	event.preventDefault();
	verdict();
});
$("login").addEventListener("submit", event => {
	event.preventDefault();
	state.token = $("token").value.trim();
	$("token").value = "";
	try {
		sessionStorage.setItem("token", state.token);
	} catch (error) { /* the token stays in this page */ }
});
setInterval(age, 500);
every(1000, second);
every(10000, details);
every(60000, gates);
every(2000, events_follow);
