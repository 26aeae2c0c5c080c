import type { Instance } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { EniLimits } from '../../cloud/eni-limits.ts';
import { PROVIDER_ID_FORMS } from '../../cloud/provider-id.ts';
import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE, NODE_ANNOTATION, NODE_INSTANCE_LABEL } from '../../crd/names.ts';
import type { NodeEniConfig } from '../../crd/node-eni-config.ts';
import { Contests, contestText } from '../../kube/contest.ts';
import type { ReconcileResult } from '../../kube/controller.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { LastReports } from '../../kube/reporter.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { namedProblems } from '../../observability/problem-registry.ts';
import type { NecEntry } from '../cache/decode-nec.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import type { Term } from '../calls/term.ts';
import { readTaintSelector, type TaintSelector } from '../config/taint-selector.ts';
import type { NodeProblem } from '../decide/node-view.ts';
import { problemKey, problemOfRefusal, problemText } from '../decide/problem-text.ts';
import { findExclusiveLimit, isExclusiveServed } from '../exclusive/find-exclusive-limit.ts';
import { hasEniSubnets } from '../subnets/has-eni-subnets.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { AddressLookup } from './address-lookup.ts';
import { applyPolicy } from './apply-policy.ts';
import { checkDeparture, type DepartureResult } from './check-departure.ts';
import { continueGroupSync } from './continue-group-sync.ts';
import { type ConfigStep, decideConfig } from './decide-config.ts';
import { type AppliedPolicy, decidePolicy, isStaticNode, type Policy, readDesiredPodNum } from './decide-policy.ts';
import type { InstanceCache } from './instance-cache.ts';
import { annotationNotes, type KnownNodeFacts, takenText } from './node-facts.ts';
import type { NodeSettingsFlags } from './node-flags.ts';
import { newConfig } from './render-config.ts';
import type { Renewals } from './renewals.ts';
import { ensureServingMarks } from './serving-marks.ts';
import { canServePods } from './startup-taints.ts';

/** Dependencies of the node controller. */
type NodeControllerDeps = NodeTermDeps & {
  readonly config: NodeSettingsFlags;
  readonly instances: InstanceCache;
  /** Finds another Node that has this instance. Default: there is never one. */
  readonly rivalOf?: (name: string, instanceId: string) => string | undefined;
  readonly facts: KnownNodeFacts;
  readonly lookup: Pick<AddressLookup, 'lookUp' | 'forget'>;
  /** Returns the VPC of the cluster; undefined while it is not known. */
  readonly vpcId: () => string | undefined;
  /** Objects that were let go although their nodes stay. */
  readonly renewals: Renewals;
  readonly subnets: Pick<Subnets, 'config'>;
};

type NodeTermDeps = Pick<
  Term,
  'kube' | 'nodes' | 'necs' | 'brake' | 'definitions' | 'clock' | 'log' | 'events' | 'metrics' | 'enqueueNode'
>;

/** Keeps NodeENIConfigs in step with Nodes, and taints and conditions of Nodes in step with their agents. */
type NodeController = {
  /** Reconciles one node, by its name. Idempotent. */
  reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult>;
};

/** Retry while informers read their first list. */
const STARTING_MS = 1_000;
/** A new instance that the cloud does not list yet is described again after this. */
const UNLISTED_MS = 10_000;
/** A problem that only people or administrators of the cloud can repair is checked again after this. */
const MANUAL_REPAIR_MS = 60_000;

/** An absent Node is read again at this interval, as long as its NodeENIConfig exists. */
const ABSENT_RECHECK_MS = 60_000;
/** An instance that one description lacked is described again after this. */
const PENDING_RECHECK_MS = 15_000;

/** Makes the node controller. It remembers only which problems and held releases it has reported, and contested marks. */
export function createNodeController(deps: NodeControllerDeps): NodeController {
  const startupTaints = deps.config.startupTaints.flatMap((text) => readTaintSelector(text) ?? []);
  const context: Context = { ...deps, startupTaints, last: new LastReports(), contests: new Contests() };
  return { reconcile: (name, signal) => reconcileOne(context, name, signal) };
}

type Context = NodeControllerDeps & {
  readonly startupTaints: readonly TaintSelector[];
  /** Problems and held releases, by node. */
  readonly last: LastReports;
  /** Of marks of Nodes. */
  readonly contests: Contests;
};

async function reconcileOne(context: Context, name: string, signal: AbortSignal): Promise<ReconcileResult> {
  const { nodes, necs, facts } = context;
  if (!nodes.isSynced) return { kind: 'again', afterMs: STARTING_MS };
  const node = nodes.get(name);
  const entry = necs.get(name);
  // Pods without an address of an ENI must not wait for anything here, the cloud least of all.
  const isMarked = node?.isInstance === true && isBridged(context);
  const marksMs = isMarked ? await markNode(context, node, entry, signal) : undefined;
  const lookedUp = await lookUp(context, name, node, signal);
  const instanceId = facts.instanceIdOf(node);
  const ids = [instanceId, entry?.decoded?.status?.instanceID].filter((id) => id !== undefined);
  const described = await describeInstances(context, ids, signal);
  const rival = instanceId === undefined ? undefined : context.rivalOf?.(name, instanceId);
  const departure = entry === undefined ? undefined : await checkDeparture(context, name, entry, signal);
  reportHeld(context, name, entry, departure);
  const decided = stepOf(context, node, entry, instanceId, rival);
  const isUnproven = decided.kind === 'remove' && decided.why === 'NodeGone' && departure?.evidence !== 'enough';
  const step: ConfigStep = isUnproven ? { kind: 'none' } : decided;
  const problems =
    entry === undefined
      ? [...lookedUp.refused, ...described.refused, ...problemsOf(step, instanceId, node, rival, lookedUp.why)]
      : [];
  reportProblems(context, name, node, problems);
  const result = within(await runStep(context, step, { name, node, entry, instanceId }, signal), marksMs);
  // Everything that needs no cloud is done by now: taints are removed also while the cloud does not answer.
  const error = lookedUp.error ?? described.error;
  if (error !== undefined) throw error;
  if (lookedUp.refused.length + described.refused.length > 0) return { kind: 'again', afterMs: MANUAL_REPAIR_MS };
  if (departure === undefined || departure.evidence === 'none') return result;
  // The read that allowed a release may have been answered only now.
  context.enqueueNode(name);
  return within(result, departure.evidence === 'pending' ? PENDING_RECHECK_MS : ABSENT_RECHECK_MS);
}

/** Returns when a node is looked at again, which is after `ms` at the latest. */
function within(result: ReconcileResult, ms: number | undefined): ReconcileResult {
  if (ms === undefined) return result;
  return { kind: 'again', afterMs: result.kind === 'again' ? Math.min(result.afterMs, ms) : ms };
}

/** Reports a held release once for each reason. */
function reportHeld(
  context: Context,
  name: string,
  entry: NecEntry | undefined,
  departure: DepartureResult | undefined,
) {
  const { last, events, metrics, log } = context;
  const reason = departure?.held?.reason;
  if (last.note(`held/${name}`, reason === undefined ? [] : [reason]) === undefined) return;
  metrics.heldReleases.set(name, reason === undefined ? [] : [reason]);
  if (departure?.held === undefined || entry === undefined) return;
  const message = `the node seems to be gone, and nothing of it is released: ${departure.held.why}`;
  log.warn('the release of a missing node is held', { node: name, why: departure.held.why });
  const involved = involvedObject(NODE_ENI_CONFIGS, entry.object.metadata);
  events.record({ involved, type: 'Warning', reason: 'NodeReleaseHeld', message });
}

type Subject = {
  readonly name: string;
  readonly node: NodeEntry | undefined;
  readonly entry: NecEntry | undefined;
  readonly instanceId: string | undefined;
};

type DescribeResult = { readonly refused: readonly NodeProblem[]; readonly error?: unknown };

type LookupResult = DescribeResult & { readonly why?: string };

/** Looks for the instance of a Node that names none. */
async function lookUp(
  { facts, lookup, vpcId }: Context,
  name: string,
  node: NodeEntry | undefined,
  signal: AbortSignal,
): Promise<LookupResult> {
  if (node === undefined) lookup.forget(name);
  if (node === undefined || facts.instanceIdOf(node) !== undefined) return { refused: [] };
  try {
    const why = await lookup.lookUp(node, vpcId(), signal);
    return { refused: [], ...(why === undefined ? {} : { why }) };
  } catch (error) {
    return refusedOrFailed(error);
  }
}

/** Describes instances. Separates what the cloud refuses for good from errors that are retried with a backoff. */
async function describeInstances(
  { instances }: Context,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<DescribeResult> {
  try {
    await Promise.all([...new Set(ids)].map((id) => instances.ensureDescribed(id, signal)));
    return { refused: [] };
  } catch (error) {
    return refusedOrFailed(error);
  }
}

function refusedOrFailed(error: unknown): DescribeResult {
  if (isCloudError(error, 'never', 'credentials')) return { refused: [problemOfRefusal(error)] };
  return { refused: [], error };
}

function stepOf(
  context: Context,
  node: NodeEntry | undefined,
  entry: NecEntry | undefined,
  instanceId: string | undefined,
  rival: string | undefined,
): ConfigStep {
  const { instances, facts, renewals, config, subnets } = context;
  // What an object that was let go had is still on the instance: the next object drains it.
  const isHeld = entry === undefined && node !== undefined && renewals.isAwaited(node.name);
  const hasSubnets = !config.allocateNodeCidrs || node?.subnetsLabel !== undefined || hasEniSubnets(config, subnets);
  const isDisabled = node?.annotations[NODE_ANNOTATION.disableEni] === 'true' && !isHeld;
  return decideConfig({
    node: node === undefined ? undefined : { isInstance: node.isInstance, isDisabled, hasSubnets },
    instanceId,
    presence: instances.presence(instanceId),
    rival,
    hasLimits: instanceId !== undefined && instances.find(instanceId)?.limits !== undefined,
    config:
      entry === undefined
        ? undefined
        : {
            instanceId: entry.decoded === undefined ? undefined : facts.instanceOf(node, entry.decoded).instanceId,
            isLeaving: entry.object.metadata.deletionTimestamp !== undefined,
            isInUse: isInUse(entry),
          },
  });
}

function problemsOf(
  step: ConfigStep,
  instanceId: string | undefined,
  node: NodeEntry | undefined,
  rival: string | undefined,
  why: string | undefined,
): readonly NodeProblem[] {
  const notes = annotationNotes(node).map((message): NodeProblem => ({ reason: 'AnnotationInvalid', message }));
  if (step.kind !== 'wait' || step.why === 'NotDescribed') return notes;
  if (step.why === 'InstanceTaken') {
    return [...notes, { reason: 'InstanceTaken', message: takenText(instanceId, rival) }];
  }
  return [...notes, { reason: 'InstanceUnknown', message: `${whyUnknown(node, instanceId, why)}; it gets no ENI` }];
}

function whyUnknown(node: NodeEntry | undefined, instanceId: string | undefined, why: string | undefined): string {
  if (instanceId !== undefined) return `the cloud has no instance ${instanceId} in this account and region`;
  const others = `the label ${NODE_INSTANCE_LABEL} nor a Machine names its instance`;
  const foreign = node?.foreignProviderId;
  if (foreign === undefined) return `neither spec.providerID, ${others}${why === undefined ? '' : `, and ${why}`}`;
  const shown = JSON.stringify(foreign.slice(0, SHOWN_CHARS));
  return `spec.providerID ${shown} names no instance of this cloud (${PROVIDER_ID_FORMS}), and neither ${others}`;
}

const SHOWN_CHARS = 80;

/** Reports the problems once for each change. */
function reportProblems(context: Context, name: string, node: NodeEntry | undefined, problems: readonly NodeProblem[]) {
  const { last, events, metrics } = context;
  if (last.note(`problems/${name}`, problems, problemKey) === undefined) return;
  metrics.problems.reportOfTerm(`join/${name}`, namedProblems(name, problems));
  if (node === undefined) return;
  for (const problem of problems) {
    const { reason } = problem;
    events.record({ involved: involvedObject(NODES, node), type: 'Warning', reason, message: problemText(problem) });
  }
}

async function runStep(
  context: Context,
  step: ConfigStep,
  subject: Subject,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  switch (step.kind) {
    case 'create':
      await createConfig(context, subject, signal);
      return { kind: 'done' };
    case 'remove':
      await removeConfig(context, subject, step.why, signal);
      return { kind: 'done' };
    case 'keep':
      return await updateConfig(context, subject, signal);
    case 'wait':
      if (subject.instanceId === undefined) return { kind: 'again', afterMs: MANUAL_REPAIR_MS };
      return { kind: 'again', afterMs: step.why === 'NotDescribed' ? UNLISTED_MS : MANUAL_REPAIR_MS };
    case 'none':
      return requeueForGrace(context, subject);
  }
}

async function createConfig(context: Context, { name, node, instanceId }: Subject, signal: AbortSignal): Promise<void> {
  const { kube, instances, config, definitions, renewals, log, metrics } = context;
  const { instance, limits } = (instanceId === undefined ? undefined : instances.find(instanceId)) ?? {};
  if (instance === undefined || limits === undefined || node === undefined) return;
  // With a lost definition the term ends, and the node is looked at again.
  if (!(await definitions.areSame(signal))) return;
  signal.throwIfAborted();
  const desiredPodNum = readDesiredPodNum(node.annotations).value;
  const exclusive = exclusiveOf(context, node, instance, limits);
  const isStatic = isStaticNode(node, config.enableStaticIp);
  const policy = decidePolicy({ limits, exclusive, isStatic, settings: {}, desiredPodNum, spec: {}, applied: {} });
  const lastEpoch = renewals.epochOf(name) ?? (definitions.wereLostLately ? 0 : undefined);
  try {
    await kube.create(NODE_ENI_CONFIGS, newConfig(name, instance, limits, policy, config, lastEpoch), signal);
  } catch (error) {
    // The watch is behind: its event enqueues the node again.
    if (isKubeError(error, 'ALREADY_EXISTS')) return;
    throw error;
  }
  renewals.noteCreated(name);
  log.info('a node joined', { node: name, instanceId, instanceType: instance.instanceType, zone: instance.zone });
  metrics.nodeConfigs.inc({ kind: 'created' });
}

function isInUse({ decoded }: NecEntry): boolean {
  if (decoded === undefined) return true;
  const { eniInfos = [], intents = [] } = decoded.status ?? {};
  return eniInfos.length + intents.length > 0;
}

async function removeConfig(
  context: Context,
  { name, entry }: Subject,
  why: Extract<ConfigStep, { readonly kind: 'remove' }>['why'],
  signal: AbortSignal,
): Promise<void> {
  const { kube, log, metrics } = context;
  const { uid } = entry?.object.metadata ?? {};
  if (uid === undefined) return;
  await kube.delete(NODE_ENI_CONFIGS, { name }, { uid }, signal);
  log.info('a node left', { node: name, why });
  metrics.nodeConfigs.inc({ kind: 'removed' });
}

async function updateConfig(context: Context, subject: Subject, signal: AbortSignal): Promise<ReconcileResult> {
  const { name, node, entry, instanceId } = subject;
  const config = entry?.decoded;
  if (node === undefined || entry === undefined) return { kind: 'done' };
  const marksMs = isBridged(context) ? undefined : await markNode(context, node, entry, signal);
  // An unreadable object is not written: a person has to repair it.
  if (config === undefined || instanceId === undefined) return within({ kind: 'done' }, marksMs);
  const { instance, limits } = context.instances.find(instanceId) ?? {};
  if (instance !== undefined && limits !== undefined && context.instances.presence(instanceId) !== 'gone') {
    const policyOf = (current: NodeEniConfig, applied: AppliedPolicy): Policy =>
      decidePolicy({
        limits,
        exclusive: exclusiveOf(context, node, instance, limits),
        isStatic: isStaticNode(node, context.config.enableStaticIp),
        settings: context.facts.settingsOf(name, current).settings,
        desiredPodNum: readDesiredPodNum(node.annotations).value,
        spec: current.spec ?? {},
        applied,
      });
    const change = await applyPolicy(
      context.kube,
      { name, object: entry.object, config },
      policyOf,
      { instance, limits },
      signal,
    );
    if (change.warm !== undefined) reportWarmTarget(context, node, change.warm);
  }
  await continueGroupSync(context, { name, node, entry, config }, signal);
  return within(requeueForGrace(context, subject), marksMs);
}

/** Reports whether the node serves exclusive ENIs, and how many its instance may have. */
function exclusiveOf(
  { config }: Context,
  { directEniLabel }: NodeEntry,
  { instanceType, cores }: Instance,
  { secondaryEnis, extensionEnis }: EniLimits,
) {
  const isServed = isExclusiveServed(directEniLabel, config.enableDirectEni);
  return { isServed, limit: findExclusiveLimit({ instanceType, cores, secondaryEnis, extensionEnis }) };
}

function reportWarmTarget({ events }: Context, node: NodeEntry, warm: string): void {
  const message = warm === '' ? 'back to the spec of the NodeENIConfig' : `minimum/maximum ${warm}`;
  const reason = 'SucceedSetRouteENIWarmTarget';
  events.record({
    involved: involvedObject(NODES, node),
    type: 'Normal',
    reason,
    message: `warm target of shared ENIs: ${message}`,
  });
}

/** Reports whether Pods that name no network need no address of an ENI. */
function isBridged({ config }: Context): boolean {
  return config.defaultNetwork === 'tke-bridge';
}

/** @returns after how many milliseconds marks are looked at again; undefined: no need to */
async function markNode(
  context: Context,
  node: NodeEntry,
  entry: NecEntry | undefined,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { config, clock, metrics, log, events } = context;
  const { readyResources = [], maxDirectENI = 0 } = entry?.decoded?.spec ?? {};
  const isServing = readyResources.includes(ENI_IP_RESOURCE);
  const served = { readyResources, isExclusiveServed: maxDirectENI > 0, isBridged: isBridged(context) };
  const marks = {
    isServing,
    exclusive: { isServed: served.isExclusiveServed, isServing: readyResources.includes(DIRECT_ENI_RESOURCE) },
    isBridged: served.isBridged,
    startupTaints: canServePods(node, served) ? context.startupTaints : [],
    putsTaintOn: config.enableNodeTaint,
    writesCondition: config.enableNodeCondition,
    nowText: new Date(clock.nowMs()).toISOString(),
  };
  const onContest = (what: string): void => {
    const message = contestText(what);
    events.record({ involved: involvedObject(NODES, node), type: 'Warning', reason: 'FieldContested', message });
  };
  try {
    const { changes, againMs } = await ensureServingMarks({ ...context, onContest }, node, marks, signal);
    for (const { kind, taint } of changes) {
      log.info('taint of a node changed', { node: node.name, change: kind, taint });
      metrics.nodeTaints.inc({ kind });
    }
    return againMs;
  } catch (error) {
    // The Node was deleted in between: its event enqueues it again.
    if (!isKubeError(error, 'NOT_FOUND')) throw error;
    return undefined;
  }
}

/** Requeues a missing node for the end of its grace: nothing else triggers a reconcile then. */
function requeueForGrace(context: Context, { name, entry }: Subject): ReconcileResult {
  if (entry === undefined) {
    context.facts.absentForMs(name, undefined);
    return { kind: 'done' };
  }
  const absentForMs = context.facts.absentForMs(name, entry.decoded);
  const isAbsent = absentForMs > 0 || context.nodes.get(name) === undefined;
  if (!isAbsent) return { kind: 'done' };
  const leftMs = context.config.nodeReleaseGraceMs - absentForMs;
  if (leftMs > 0) return { kind: 'again', afterMs: leftMs };
  // Its last Pod may be deleted at any time from now on.
  context.enqueueNode(name);
  return { kind: 'again', afterMs: MANUAL_REPAIR_MS };
}
