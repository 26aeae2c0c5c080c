import { byGravity, type Finding } from '../finding.ts';
import { ifKnown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { indexHoldings } from './find-addresses.ts';
import { findCloudLeaks } from './find-cloud-leaks.ts';
import { findDoubles } from './find-doubles.ts';
import { findStrayRecords } from './find-stray-records.ts';
import { findStuckWork } from './find-stuck-work.ts';

/** Leaks and duplicates, and what could not be read. */
export type Leaks = {
  /** Errors first. */
  readonly findings: readonly Finding[];
  readonly unseen: readonly Unseen[];
};

/** A resource that could not be read, so that the findings do not cover it. */
type Unseen = { readonly what: string; readonly why: string; readonly next: string };

/**
 * Returns the findings of one read. Objects younger than `graceMs` are skipped, since an operation on them may be in
 * progress. Findings without an age may also be in progress; compare them with a second read (`seenTwice`).
 */
export function findLeaks(facts: ClusterFacts, graceMs: number): Leaks {
  const index = indexHoldings(facts.necs);
  const findings = [
    ...findDoubles(facts, index),
    ...findCloudLeaks(facts, index, graceMs),
    ...findStrayRecords(facts, index, graceMs),
    ...findStuckWork(facts, graceMs),
  ];
  return { findings: findings.toSorted(byGravity), unseen: unseenOf(facts) };
}

/**
 * Returns the findings of the later read that the earlier one contains too. The others were operations in progress. A
 * resource that one of the two could not read counts as unchecked.
 */
export function seenTwice(earlier: Leaks, later: Leaks): Leaks {
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

function unseenOf(facts: ClusterFacts): readonly Unseen[] {
  const parts: readonly (readonly [string, Known<unknown> | undefined])[] = [
    ['Nodes', facts.nodes],
    ['Pods', facts.pods],
    ['VpcIPs', facts.vips],
    ['VpcIPClaims', facts.claims],
    ['VpcENIs', facts.venis],
    ['EIPClaims', facts.eips],
    ['the cloud', facts.cloud],
  ];
  const unread = parts.flatMap(([what, fact]) =>
    fact?.kind === 'unknown' ? [{ what, why: fact.why, next: fact.next }] : [],
  );
  const cloud = facts.cloud === undefined ? undefined : ifKnown(facts.cloud);
  if (cloud === undefined || cloud.clusterId !== undefined) return unread;
  const why = 'no ENI of a NodeENIConfig carries the tag of a cluster';
  return [...unread, { what: 'orphaned ENIs', why, next: 'give --cluster-id' }];
}
