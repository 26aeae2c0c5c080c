import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { bySeverity, type Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { wrapText } from '../../output/render-text.ts';
import { buildAddressIndex } from './build-address-index.ts';
import type { ClusterFacts, Identity, WorkIntent } from './cluster-facts.ts';
import { workIntentOf } from './decode-objects.ts';
import { findCloudLeaks } from './find-cloud-leaks.ts';
import { findDuplicates } from './find-duplicates.ts';
import { findOrphanedRecords } from './find-orphaned-records.ts';
import type { ClusterLayout } from './render-nodes.ts';
import { spanText } from './render-span.ts';

/** Leaks and duplicates, and what could not be read. */
type Leaks = {
  /** Errors first. */
  readonly findings: readonly Finding[];
  readonly unseen: readonly UnreadResource[];
};

/** A resource that could not be read, so that the findings do not cover it. */
type UnreadResource = { readonly what: string; readonly why: string; readonly next: string };

/**
 * Returns the findings of one read. Objects younger than `graceMs` are skipped, since an operation on them may be in
 * progress. Findings without an age may also be in progress; compare them with a second read (`intersectLeaks`).
 */
export function findLeaks(facts: ClusterFacts, graceMs: number): Leaks {
  const index = buildAddressIndex(facts.necs);
  const findings = [
    ...findDuplicates(facts, index),
    ...findCloudLeaks(facts, index, graceMs),
    ...findOrphanedRecords(facts, index, graceMs),
    ...findStuckWork(facts, graceMs),
  ];
  return { findings: findings.toSorted(bySeverity), unseen: unreadResources(facts) };
}

/**
 * Returns the findings of the later read that the earlier one contains too. The others were operations in progress. A
 * resource that one of the two could not read counts as unchecked.
 */
export function intersectLeaks(earlier: Leaks, later: Leaks): Leaks {
  const before = new Set(earlier.findings.map(identityOf));
  const unseen = new Map([...earlier.unseen, ...later.unseen].map((one) => [one.what, one]));
  return {
    findings: later.findings.filter((finding) => before.has(identityOf(finding))),
    unseen: [...unseen.values()],
  };
}

function identityOf({ id, subjects }: Finding): string {
  return `${id} ${subjects.join(' ')}`;
}

function unreadResources(facts: ClusterFacts): readonly UnreadResource[] {
  const resources: readonly (readonly [string, Known<unknown> | undefined])[] = [
    ['Nodes', facts.nodes],
    ['Pods', facts.pods],
    ['VpcIPs', facts.vips],
    ['VpcIPClaims', facts.claims],
    ['VpcENIs', facts.venis],
    ['EIPClaims', facts.eips],
    ['the cloud', facts.cloud],
  ];
  const unread = resources.flatMap(([what, fact]) =>
    fact?.kind === 'unknown' ? [{ what, why: fact.why, next: fact.next }] : [],
  );
  const cloud = facts.cloud === undefined ? undefined : ifKnown(facts.cloud);
  if (cloud === undefined || cloud.clusterId !== undefined) return unread;
  const why = 'no ENI of a NodeENIConfig carries the tag of a cluster';
  return [...unread, { what: 'orphaned ENIs', why, next: 'give --cluster-id' }];
}

/** Scope of the check: the findings are valid for it. */
type CheckScope = {
  /** Milliseconds between the two reads; undefined for a single read. */
  readonly apartMs: number | undefined;
  readonly graceMs: number;
  readonly wasCloudAsked: boolean;
};

const COLORS: Readonly<Record<Finding['severity'], Color>> = { error: 'red', warning: 'yellow', info: 'cyan' };
/** Width of the severity column, with a gap. */
const INDENT = 9;
/** Number of findings of one kind that are printed in full where the output has a fixed width. */
const SHOWN_ALIKE = 3;

/** Renders findings with their fixes, grouped by kind, then the scope of the check. */
export function renderLeaks({ findings, unseen }: Leaks, terms: CheckScope, layout: ClusterLayout): string {
  const groups = Map.groupBy(findings, ({ severity, id }) => `${severity} ${id}`);
  const blocks = [...groups.values()].map((alike) => renderAlike(alike, layout));
  const skips = unseen.map(({ what, why }) =>
    paint(`skipped  ${plainText(`${what}: ${why}`)}`, 'dim', layout.isColored),
  );
  return `${[...blocks, ...skips, renderSum(findings, terms, layout)].join('\n')}\n`;
}

function renderAlike(alike: readonly Finding[], layout: ClusterLayout): string {
  const [first] = alike;
  if (first === undefined) return '';
  const { width, isColored } = layout;
  const maxWidth = Math.min(width, MAX_WIDTH);
  const shown = width === Number.POSITIVE_INFINITY ? alike : alike.slice(0, SHOWN_ALIKE);
  const margin = ' '.repeat(INDENT);
  const head = `${paint(first.severity.padEnd(INDENT), COLORS[first.severity], isColored)}${first.id}`;
  const why = wrapText(first.why, maxWidth, INDENT).map((line) => paint(line, 'dim', isColored));
  const cases = shown.flatMap(({ what, fix }) => [
    ...wrapText(plainText(what), maxWidth, INDENT),
    ...fix.map((line) => `${margin}  ${plainText(line)}`),
  ]);
  const more = alike.length - shown.length;
  const rest = more === 0 ? [] : [`${margin}${more} more; -o wide and -o json have all`];
  return [head, ...why, ...cases, ...rest, ''].join('\n');
}

/** Largest width of prose; longer lines are hard to read. */
const MAX_WIDTH = 120;

function renderSum(findings: readonly Finding[], terms: CheckScope, { isColored }: ClusterLayout): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const counts =
    findings.length === 0 ? 'no leaks, no duplicates' : `${findings.length} found, ${errors} of them errors`;
  const color: Color = errors > 0 ? 'red' : findings.length > 0 ? 'yellow' : 'green';
  const reads = terms.apartMs === undefined ? 'one look' : `in two looks ${spanText(terms.apartMs)} apart`;
  const cloud = terms.wasCloudAsked ? '' : '; the cloud was not asked (--cloud)';
  return `${paint(counts, color, isColored)}: ${reads}, nothing younger than ${spanText(terms.graceMs)}${cloud}`;
}

type WithIntents = Identity & { readonly intents: readonly WorkIntent[] };

/** Returns cloud calls and deletions that have been in progress for longer than `graceMs`, and malformed objects. */
function findStuckWork(facts: ClusterFacts, graceMs: number): readonly Finding[] {
  const necs = facts.necs.map((nec) => ({ ...nec, intents: (nec.status.intents ?? []).map(workIntentOf) }));
  const kinds: readonly (readonly [string, readonly WithIntents[]])[] = [
    ['nec', necs],
    ['vip', ifKnown(facts.vips) ?? []],
    ['veni', ifKnown(facts.venis) ?? []],
    ['eipc', ifKnown(facts.eips) ?? []],
  ];
  const claims = (ifKnown(facts.claims) ?? []).map((claim) => ({ ...claim, intents: [] }));
  const all = [...kinds, ['vipc', claims] as const];
  return [
    ...facts.necs.flatMap(malformed),
    ...all.flatMap(([short, objects]) =>
      objects.flatMap((object) => [
        ...object.intents.flatMap((intent) => stuckIntent(short, object, intent, facts.takenAtMs, graceMs)),
        ...stuckDeletion(short, object, facts.takenAtMs, graceMs),
      ]),
    ),
  ];
}

function malformed({ key, faults }: ClusterFacts['necs'][number]): readonly Finding[] {
  const [first, ...more] = faults;
  if (first === undefined) return [];
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const what = `NodeENIConfig ${key}: ${first}${rest}`;
  return [finding('object-malformed', { what, fix: [`kubectl get nec ${key} -o yaml`], subjects: [`nec:${key}`] })];
}

function stuckIntent(
  short: string,
  { key }: Identity,
  { id, action, phase, recordedMs, tries, lastError }: WorkIntent,
  nowMs: number,
  graceMs: number,
): readonly Finding[] {
  const ageMs = nowMs - recordedMs;
  if (ageMs < graceMs) return [];
  const error = lastError === '' ? '' : `; ${lastError}`;
  return [
    finding('intent-stuck', {
      what: `${short} ${key}: ${action} has been ${phase} for ${spanText(ageMs)}, ${tries} tries${error}`,
      fix: [describe(short, key), 'kubectl -n kube-system logs deploy/tke-eni-ipamd'],
      subjects: [`${short}:${key}`, `intent:${id}`],
    }),
  ];
}

function stuckDeletion(
  short: string,
  { key, deletionRequestedMs, finalizers }: Identity,
  nowMs: number,
  graceMs: number,
): readonly Finding[] {
  if (deletionRequestedMs === undefined || finalizers.length === 0 || nowMs - deletionRequestedMs < graceMs) return [];
  return [
    finding('deletion-stuck', {
      what: `${short} ${key} is being deleted for ${spanText(nowMs - deletionRequestedMs)}; it waits for ${finalizers.join(', ')}`,
      fix: [describe(short, key), 'kubectl -n kube-system logs deploy/tke-eni-ipamd'],
      subjects: [`${short}:${key}`],
    }),
  ];
}

function describe(short: string, key: string): string {
  const [namespace = '', name] = key.split('/');
  return name === undefined ? `kubectl describe ${short} ${key}` : `kubectl -n ${namespace} describe ${short} ${name}`;
}
