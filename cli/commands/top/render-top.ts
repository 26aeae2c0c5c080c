import { CNI_CODE } from '../../../agent/api/cni-code.ts';
import type { ApiBudget } from '../../../agent/api/ops-messages.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { ageText, latencyText, timeText } from '../../agent/duration-text.ts';
import { cutText, padText } from '../../output/cell-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { countUses, type PoolView, type UseCounts } from '../pool/pool-view.ts';
import { eniState } from '../pool/render-pool.ts';
import type { CallView, TopView } from './build-top-view.ts';

/** Orders of the ENIs. */
export const TOP_SORTS = ['ENI', 'most in use', 'least free'] as const;

/** One of TOP_SORTS. */
export type TopSort = (typeof TOP_SORTS)[number];

/** How a frame is drawn. */
export type FrameOptions = {
  readonly columns: number;
  /** Number of lines; Infinity: all lines are shown. */
  readonly rows: number;
  readonly isColored: boolean;
  readonly sort: TopSort;
  readonly isPaused: boolean;
  /** Wall clock of the frame. */
  readonly unixMs: number;
  /** Why the figures are outdated; empty when they are current. */
  readonly problem: string;
  /** False leaves out the line with the keys. */
  readonly hasKeys: boolean;
};

/**
 * Renders one frame: at most `rows` lines of at most `columns` columns. When space is short, ENIs are left out first.
 */
export function renderTop(view: TopView, options: FrameOptions): readonly string[] {
  const [total = '', ...enis] = barLines(barRows(view.now.pool, options), options);
  const head = [...titleLines(view, options), total, ...poolLines(view, options)];
  const tail = [...callLines(view, options), ...troubleLines(view, options)];
  const keys = options.hasKeys ? [keyLine(options)] : [];
  const freeRows = options.rows - head.length - tail.length - keys.length;
  const shown = enis.length <= freeRows ? enis : enis.slice(0, Math.max(0, freeRows - 1));
  const hidden = enis.length - shown.length;
  const more = hidden > 0 && freeRows > 0 ? [plain(`  … and ${hidden} more`, options, 'dim')] : [];
  const body = [...head, ...shown, ...more, ...tail].slice(0, Math.max(0, options.rows - keys.length));
  const isBounded = Number.isFinite(options.rows);
  const blank = isBounded ? Array.from({ length: options.rows - body.length - keys.length }, () => '') : [];
  return [...body, ...blank, ...keys];
}

function plain(text: string, { columns, isColored }: FrameOptions, color?: Color): string {
  return paint(cutText(plainText(text), columns), color, isColored);
}

function titleLines({ now }: TopView, options: FrameOptions): readonly string[] {
  const { nodeName, agentVersion, uptimeMs, ruleMode, status } = now.summary;
  const left = `tke-eni top  ${nodeName || 'this node'}  ${agentVersion}  up ${ageText(uptimeMs)}  ${ruleMode}`;
  const right = `${options.isPaused ? 'PAUSED  ' : ''}${timeText(options.unixMs).slice(0, 8)}`;
  const maxWidth = options.columns - right.length - 1;
  const title = `${padText(cutText(plainText(left), maxWidth), maxWidth)} ${right}`;
  const lines = [paint(title, 'bold', options.isColored)];
  if (options.problem !== '') lines.push(plain(options.problem, options, 'red'));
  if (status !== undefined && status.code !== 0) {
    const isLimited = status.code === LIMITED;
    const text = `${isLimited ? 'ready, but limited' : 'not ready'}: ${status.msg} (code ${status.code})`;
    lines.push(plain(text, options, isLimited ? 'yellow' : 'red'));
  }
  return [...lines, ''];
}

/** CNI code of an agent that serves ADDs with limits, for example because of a conflict. */
const LIMITED = CNI_CODE.limitedConnectivity;

function poolLines({ now: { pool } }: TopView, options: FrameOptions): readonly string[] {
  const waiting = pool.waiting ?? [];
  const lines = [plain(`${' '.repeat(NAME_WIDTH + 1)}${demandText(pool)}`, options, 'dim')];
  if (waiting.length > 0) {
    const text = waiting.length === 1 ? '1 ADD waits' : `${waiting.length} ADDs wait`;
    lines.push(plain(`${text} for an address: ${waiting.join(', ')}`, options, 'red'));
  }
  if (pool.supplyProblem !== '') lines.push(plain(`supply: ${pool.supplyProblem}`, options, 'yellow'));
  return lines;
}

function demandText({ demand, asked, warm }: PoolView): string {
  const isAsked = asked === undefined || asked === demand;
  const requested =
    demand === undefined ? '' : isAsked ? `asked for ${demand}` : `wanted ${demand}, asked for ${asked}`;
  return warm === undefined ? requested : `${requested}, kept warm ${warm.min} to ${warm.max}`;
}

const NAME_WIDTH = 20;
/** Range of a bar's width: narrower ones are not readable, wider ones show nothing more. */
const MIN_BAR = 6;
const MAX_BAR = 60;

type BarRow = { readonly name: string; readonly counts: UseCounts; readonly note: string };

/** Renders bars of equal width, so that they can be compared. */
function barLines(rows: readonly BarRow[], options: FrameOptions): readonly string[] {
  const { columns, isColored } = options;
  const numbers = rows.map(({ counts }) => numbersText(counts));
  const numberWidth = Math.max(...numbers.map((text) => text.length));
  const noteWidth = Math.max(...rows.map(({ note }) => note.length));
  const freeWidth = columns - NAME_WIDTH - numberWidth - (noteWidth === 0 ? 0 : noteWidth + 1) - 4;
  const barWidth = Math.max(MIN_BAR, Math.min(MAX_BAR, freeWidth));
  return rows.map(({ name, counts, note }, index) => {
    const title = padText(cutText(plainText(name), NAME_WIDTH), NAME_WIDTH);
    if (columns < NAME_WIDTH + barWidth + 4) return cutText(title, columns);
    const bar = renderBar(barSegments(counts), counts.total, barWidth, isColored);
    const rest = cutText(
      `${padText(numbers[index] ?? '', numberWidth)} ${plainText(note)}`,
      columns - NAME_WIDTH - barWidth - 4,
    );
    return `${title} [${bar}] ${rest}`.trimEnd();
  });
}

function numbersText(counts: UseCounts): string {
  return `${counts['in-use']}/${counts.total} in use, ${counts.free} free, ${counts.cooling} cool`;
}

function barSegments(counts: UseCounts): readonly BarSegment[] {
  return [
    { count: counts['in-use'], char: '█', color: 'green' },
    { count: counts.cooling, char: '▒', color: 'cyan' },
    { count: counts.unready + counts.offered + counts.releasing, char: '·', color: 'dim' },
    { count: counts.free, char: '░' },
  ];
}

/** Returns the rows of the bars: the node, then its ENIs. */
function barRows(pool: PoolView, { sort }: FrameOptions): readonly BarRow[] {
  const rows = pool.enis.map((eni) => ({
    eni,
    counts: countUses(pool.addresses.filter(({ eniId }) => eniId === eni.eniId)),
  }));
  const order = {
    ENI: () => 0,
    'most in use': (a: UseCounts, b: UseCounts) => b['in-use'] - a['in-use'],
    'least free': (a: UseCounts, b: UseCounts) => a.free - b.free,
  }[sort];
  const enis = rows
    .toSorted((a, b) => order(a.counts, b.counts) || compareTexts(a.eni.eniId, b.eni.eniId))
    .map(({ eni, counts }) => {
      const state = eniState(eni);
      const note = state === 'ready' || state === 'attached' ? '' : state;
      return { name: `  ${eni.eniId} ${eni.ifname ?? ''}`, counts, note };
    });
  return [{ name: 'addresses', counts: countUses(pool.addresses), note: '' }, ...enis];
}

const CALL_COLUMNS = ['', '/s', 'failed', 'p50', 'p90', 'p99', 'since start'] as const;
const CALL_WIDTHS = [6, 8, 8, 8, 8, 8, 22] as const;

function callLines({ calls, windowMs }: TopView, options: FrameOptions): readonly string[] {
  const span =
    windowMs === undefined ? 'since the agent started' : `last ${Math.max(1, Math.round(windowMs / 1_000))} s`;
  const row = (cells: readonly string[]) =>
    cells.map((cell, index) => padText(cell, CALL_WIDTHS[index] ?? 0, index === 0 ? 'left' : 'right')).join('');
  return [
    '',
    plain(`CALLS (${span})`, options, 'bold'),
    plain(row(CALL_COLUMNS), options, 'dim'),
    ...calls.map((call) => plain(row(callCells(call)), options, call.failed > 0 ? 'yellow' : undefined)),
  ];
}

function callCells({ verb, perSecond, failed, latency, total, totalFailed }: CallView): readonly string[] {
  return [
    `  ${verb}`,
    perSecond === undefined ? '-' : perSecond.toFixed(1),
    `${failed}`,
    latency === undefined ? '-' : latencyText(latency.p50),
    latency === undefined ? '-' : latencyText(latency.p90),
    latency === undefined ? '-' : latencyText(latency.p99),
    totalFailed === 0 ? `${total}` : `${total} (${totalFailed} failed)`,
  ];
}

function troubleLines({ now, trouble, apiCalls }: TopView, options: FrameOptions): readonly string[] {
  const { conflicts, held, passes, lastPassAgeMs, lastPassCause, lastPassError, api } = now.summary;
  const count = (name: string, { total, rise }: { total: number; rise: number }) =>
    `${name} ${total}${rise > 0 ? ` (+${rise})` : ''}`;
  const counts = [
    count('drift', trouble.drift),
    count('repaired', trouble.repaired),
    count('fights', trouble.fights),
    count('notifications lost', trouble.overruns),
  ].join('  ');
  const isRising = trouble.drift.rise > 0 || trouble.fights.rise > 0;
  const pass = passes === 0 ? 'no pass yet' : `pass ${passes}, ${ageText(lastPassAgeMs)} ago ${lastPassCause}`;
  return [
    '',
    plain('KERNEL', options, 'bold'),
    plain(`  ${counts}`, options, isRising ? 'yellow' : undefined),
    plain(`  ${pass}`, options),
    ...(lastPassError === '' ? [] : [plain(`  the last pass failed: ${lastPassError}`, options, 'red')]),
    ...held.map((text) => plain(`  fight: ${text}`, options, 'red')),
    ...conflicts.map((text) => plain(`  conflict: ${text}`, options, 'yellow')),
    ...(api === undefined ? [] : apiLines(api, apiCalls, options)),
  ];
}

function apiLines(api: ApiBudget, apiCalls: number, options: FrameOptions): readonly string[] {
  const contact = api.heard ? `contact ${ageText(api.silenceMs)} ago` : 'no contact yet';
  const waits = api.throttled === 0 ? '' : `, ${api.throttled} waited ${ageText(api.throttledMs)} in all`;
  return [
    plain('API SERVER', options, 'bold'),
    plain(
      `  ${contact}  ${api.calls} calls${apiCalls > 0 ? ` (+${apiCalls})` : ''}, ${api.failed} failed${waits}  ${api.tokensLeft} of ${api.burst} left`,
      options,
      api.heard ? undefined : 'yellow',
    ),
  ];
}

function keyLine(options: FrameOptions): string {
  return plain(`q quit   s sort: ${options.sort}   p ${options.isPaused ? 'go on' : 'pause'}`, options, 'dim');
}

/** One segment of a bar. */
type BarSegment = { readonly count: number; readonly char: string; readonly color?: Color | undefined };

/**
 * Renders a bar of `width` columns for `total`: the segments in their order, the rest blank. A segment above zero gets
 * at least one column, as long as there is space: one address in use must not look like none.
 */
export function renderBar(segments: readonly BarSegment[], total: number, width: number, isColored: boolean): string {
  const widths = barWidths(
    segments.map(({ count }) => count),
    total,
    width,
  );
  const body = segments
    .map(({ char, color }, index) => paint(char.repeat(widths[index] ?? 0), color, isColored))
    .join('');
  const used = widths.reduce((sum, part) => sum + part, 0);
  return `${body}${' '.repeat(Math.max(0, width - used))}`;
}

function barWidths(counts: readonly number[], total: number, width: number): readonly number[] {
  if (total <= 0) return counts.map(() => 0);
  const widths = counts.map((count) => (count <= 0 ? 0 : Math.max(1, Math.round((count * width) / total))));
  // The sum of rounded widths may exceed the bar: the widest segments shrink.
  for (let excess = widths.reduce((sum, part) => sum + part, 0) - width; excess > 0; excess--) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}
