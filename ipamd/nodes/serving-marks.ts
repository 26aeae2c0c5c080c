import { DIRECT_ENI_CONDITION, DIRECT_ENI_TAINT, ENI_IP_CONDITION, ENI_IP_TAINT } from '../../crd/names.ts';
import type { ObjectVersion } from '../../kube/compare-versions.ts';
import type { Contests } from '../../kube/contest.ts';
import type { KubeClient } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { NODES } from '../../kube/resource-types.ts';
import type { Clock } from '../../runtime/clock.ts';
import { decodeNode, type NodeCondition, type NodeEntry, type NodeTaint } from '../cache/node-entry.ts';
import type { TaintSelector } from '../config/taint-selector.ts';
import { withoutStartupTaints } from './startup-taints.ts';

/** The required marks of a Node: taints and conditions. */
type RequiredMarks = {
  /** The agent serves addresses. */
  readonly isServing: boolean;
  /** Whether the node is to serve exclusive ENIs, and whether its agent serves them. Default: it is not to. */
  readonly exclusive?: { readonly isServed: boolean; readonly isServing: boolean };
  /**
   * Pods that name no network are on the node's bridge: no mark may keep them off, whoever made it. The extended
   * resource alone keeps off those that need an ENI. Default: false.
   */
  readonly isBridged?: boolean;
  /** Taints of others that are to go now. Default: none. */
  readonly startupTaints?: readonly TaintSelector[];
  /** --enable-node-taint */
  readonly putsTaintOn: boolean;
  /** --enable-node-condition */
  readonly writesCondition: boolean;
  /** RFC 3339 */
  readonly nowText: string;
};

/** What writes marks. */
type MarkWriter = {
  readonly kube: KubeClient;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly contests: Contests;
  /** Called once for marks that another client keeps changing back. @param what the marks, for people */
  readonly onContest: (what: string) => void;
};

/** A taint that was put on or taken off. */
type TaintChange = { readonly kind: 'put-on' | 'taken-off'; readonly taint: string };

/** A taint or a condition, and what is done to it. */
type MarkChange = { readonly what: string; readonly value: string };

/** Other clients may change the same taints: kubelets and autoscalers settle within two rounds. */
const ATTEMPTS = 4;

/**
 * Brings the taints and the conditions of a VPC-CNI node up to date. All taints change in one write. Idempotent; writes
 * nothing when they are up to date. Returns what was done to taints, and after how long marks are to be looked at again
 * that another client keeps changing back, in milliseconds.
 * @throws KubeError when others keep changing the taints, and whatever the client throws
 */
export async function ensureServingMarks(
  writer: MarkWriter,
  node: NodeEntry,
  required: RequiredMarks,
  signal: AbortSignal,
): Promise<{ readonly changes: readonly TaintChange[]; readonly againMs: number | undefined }> {
  const { kube } = writer;
  const waits: number[] = [];
  const isHeld = (mark: MarkChange): boolean => {
    const waitMs = waitOf(writer, node, mark);
    if (waitMs > 0) waits.push(waitMs);
    return waitMs > 0;
  };
  const due = changesOf(node.taints, requiredTaints(node.taints, required));
  const held = new Set(due.filter((change) => isHeld(markOfTaint(change))).map(({ taint }) => taint));
  const { changes, version } = await ensureTaints(kube, node, { ...required, held }, signal);
  if (version !== undefined) noteWritten(writer, node, changes.map(markOfTaint), version);
  const conditions = conditionPatches(node, required).filter((patch) => !isHeld(markOfCondition(patch)));
  if (conditions.length > 0) {
    const patch = { kind: 'strategic', body: { status: { conditions } }, subresource: 'status' } as const;
    const { metadata } = await kube.patch(NODES, { name: node.name }, patch, signal);
    noteWritten(writer, node, conditions.map(markOfCondition), metadata);
  }
  return { changes, againMs: waits.length === 0 ? undefined : Math.min(...waits) };
}

function markOfTaint({ kind, taint }: TaintChange): MarkChange {
  return { what: `the taint ${taint}`, value: kind };
}

function markOfCondition({ type, status = '' }: ConditionPatch): MarkChange {
  return { what: `the condition ${type}`, value: status };
}

/** Returns the name of a mark in the contests of all nodes. */
function fieldOf({ uid }: NodeEntry, what: string): string {
  return `${uid} ${what}`;
}

/** Returns after how many milliseconds a mark may be written, as another client keeps changing it back; 0: now. */
function waitOf({ clock, contests, onContest }: MarkWriter, node: NodeEntry, { what, value }: MarkChange): number {
  const field = fieldOf(node, what);
  // The same is to be done again.
  const isUndone = contests.valueOf(field) === value;
  const { waitMs, isNew } = contests.ask(field, isUndone, node, clock.monotonicMs());
  if (isNew) onContest(what);
  return waitMs;
}

function noteWritten(
  { clock, contests }: MarkWriter,
  node: NodeEntry,
  marks: readonly MarkChange[],
  version: ObjectVersion,
): void {
  for (const { what, value } of marks) contests.note(fieldOf(node, what), value, version, clock.monotonicMs());
}

function conditionPatches(node: NodeEntry, required: RequiredMarks): readonly ConditionPatch[] {
  const { isBridged = false, exclusive, writesCondition, nowText } = required;
  const hasExclusive = exclusive?.isServed === true && !isBridged;
  const isSharedServing = isBridged ? undefined : required.isServing;
  const isExclusiveServing = hasExclusive ? exclusive.isServing : undefined;
  return [
    ...(isBridged || writesCondition
      ? [decideNodeCondition(ENI_IP_CONDITION, node.eniIpCondition, isSharedServing, nowText)]
      : []),
    // A node that is not to serve exclusive ENIs has no condition about them.
    ...(!hasExclusive || writesCondition
      ? [decideNodeCondition(DIRECT_ENI_CONDITION, node.directEniCondition, isExclusiveServing, nowText)]
      : []),
  ].filter((patch) => patch !== undefined);
}

/** Returns the taints that the node is to have; the same list when they are up to date. */
function requiredTaints(taints: readonly NodeTaint[], required: RequiredMarks): readonly NodeTaint[] {
  const { exclusive, isBridged = false, putsTaintOn, startupTaints = [] } = required;
  const shared = decideTaints(taints, isBridged || required.isServing, putsTaintOn, ENI_IP_TAINT) ?? taints;
  // On a node that serves no exclusive ENIs the taint would keep every Pod off forever.
  const isServing = isBridged || exclusive?.isServed !== true || exclusive.isServing;
  const both = decideTaints(shared, isServing, putsTaintOn, DIRECT_ENI_TAINT) ?? shared;
  return withoutStartupTaints(both, startupTaints);
}

async function ensureTaints(
  kube: KubeClient,
  node: NodeEntry,
  required: RequiredMarks & { readonly held: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<{ readonly changes: readonly TaintChange[]; readonly version?: ObjectVersion }> {
  let current = node;
  for (let attempt = 1; ; attempt++) {
    const taints = withoutHeld(current.taints, requiredTaints(current.taints, required), required.held);
    if (taints === current.taints) return { changes: [] };
    try {
      const patch = { kind: 'json', body: taintPatch(current, taints) } as const;
      const { metadata: version } = await kube.patch(NODES, { name: node.name }, patch, signal);
      return { changes: changesOf(current.taints, taints), version };
    } catch (error) {
      // The server answers INVALID to a patch whose test fails.
      if (!isKubeError(error, 'CONFLICT', 'INVALID') || attempt >= ATTEMPTS) throw error;
    }
    const read = await kube.get(NODES, { name: node.name }, signal);
    if (read === undefined || read.metadata.uid !== node.uid) return { changes: [] };
    current = decodeNode(read);
  }
}

/** Returns the required taints, where those that are held are as before; the same list when nothing is to change. */
function withoutHeld(
  before: readonly NodeTaint[],
  required: readonly NodeTaint[],
  held: ReadonlySet<string>,
): readonly NodeTaint[] {
  if (changesOf(before, required).every(({ taint }) => held.has(taint))) return before;
  const isHeld = (one: NodeTaint): boolean => held.has(textOf(one));
  return [
    ...before.filter((one) => required.includes(one) || isHeld(one)),
    ...required.filter((one) => !before.includes(one) && !isHeld(one)),
  ];
}

function changesOf(before: readonly NodeTaint[], after: readonly NodeTaint[]): readonly TaintChange[] {
  return [
    ...before.filter((one) => !after.includes(one)).map((one) => ({ kind: 'taken-off', taint: textOf(one) }) as const),
    ...after.filter((one) => !before.includes(one)).map((one) => ({ kind: 'put-on', taint: textOf(one) }) as const),
  ];
}

/** Conditions of a Node that say what its agent does not serve: addresses of shared ENIs, exclusive ENIs. */
type ServingCondition = typeof ENI_IP_CONDITION | typeof DIRECT_ENI_CONDITION;

/** One condition in a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
type ConditionPatch = Readonly<Record<string, string>>;

const SERVED = { [ENI_IP_CONDITION]: 'addresses of ENIs', [DIRECT_ENI_CONDITION]: 'exclusive ENIs' } as const;

/**
 * Decides a condition of a VPC-CNI node; undefined: it is up to date. With `isServing` undefined the node has no such
 * condition, as one that is not to serve what the condition is about.
 */
export function decideNodeCondition(
  type: ServingCondition,
  current: NodeCondition | undefined,
  isServing: boolean | undefined,
  nowText: string,
): ConditionPatch | undefined {
  if (isServing === undefined) return current === undefined ? undefined : { type, $patch: 'delete' };
  const required = isServing
    ? { status: 'False', reason: 'Serving', message: `the agent serves ${SERVED[type]}` }
    : {
        status: 'True',
        reason: 'NotServing',
        message: `the agent does not serve ${SERVED[type]}; see the NodeENIConfig of the node`,
      };
  if (current?.status === required.status && current.reason === required.reason) return undefined;
  const since = current?.status === required.status ? current.lastTransitionTime : undefined;
  return { type, ...required, lastHeartbeatTime: nowText, lastTransitionTime: since ?? nowText };
}

/**
 * Decides the taints of a VPC-CNI node: without ipamd's taint once the agent serves addresses, with it before, if
 * `putsOn` is true. For exclusive ENIs `ours` is their taint. Undefined: the taints are up to date. Other taints stay
 * unchanged, in their order.
 */
export function decideTaints(
  taints: readonly NodeTaint[],
  isServing: boolean,
  putsOn: boolean,
  ours: NodeTaint = ENI_IP_TAINT,
): readonly NodeTaint[] | undefined {
  // With any value: people also write it without one.
  const isOurs = ({ key, effect }: NodeTaint) => key === ours.key && effect === ours.effect;
  const hasOurs = taints.some(isOurs);
  if (isServing) return hasOurs ? taints.filter((taint) => !isOurs(taint)) : undefined;
  return putsOn && !hasOurs ? [...taints, ours] : undefined;
}

/** One step of a JSON patch. @see RFC 6902 */
type JsonPatchStep = { readonly op: 'test' | 'add' | 'replace'; readonly path: string; readonly value: unknown };

/**
 * Builds the patch from the taints that were read to the required ones. It fails when another client changed a taint in
 * between; heartbeats do not make it fail. A strategic patch merges taints by key alone and would remove a taint with
 * the same key and another effect.
 */
export function taintPatch(
  read: { readonly taints: readonly NodeTaint[]; readonly resourceVersion: string },
  required: readonly NodeTaint[],
): readonly JsonPatchStep[] {
  // Without a list of taints there is nothing to compare with.
  if (read.taints.length === 0) {
    return [
      { op: 'test', path: '/metadata/resourceVersion', value: read.resourceVersion },
      { op: 'add', path: '/spec/taints', value: required },
    ];
  }
  return [
    { op: 'test', path: '/spec/taints', value: read.taints },
    { op: 'replace', path: '/spec/taints', value: required },
  ];
}

function textOf({ key, effect }: NodeTaint): string {
  return `${key}:${effect}`;
}
