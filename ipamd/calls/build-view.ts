import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { ClaimRequest } from '../decide/claim-request.ts';
import type { Intent } from '../decide/decision.ts';
import {
  EXTENSION_ENIS,
  type NodeFactValues,
  type NodeProblem,
  type NodeView,
  type Refusal,
  type SubnetChoice,
} from '../decide/node-view.ts';
import { claimKey, DESCRIBE_CALL, instanceKey, nodeKey, subnetKey } from './call-keys.ts';
import type { NodeDeps } from './node-deps.ts';
import type { NodeMemory } from './node-memory.ts';
import type { ReconcileInput } from './read-input.ts';

/** An ENI that is Attaching for so long, without a call for it, is given up. */
const STUCK_ATTACHING_MS = 600_000;

/** Actions that a refusal blocks for one ENI. */
const ENI_ACTIONS = [
  'AttachNetworkInterface',
  'DetachNetworkInterface',
  'DeleteNetworkInterface',
  'AssignPrivateIpAddresses',
  'UnassignPrivateIpAddresses',
  'ModifyNetworkInterfaceAttribute',
] as const;

/** Builds the view with everything that a decision about a node depends on at this moment. */
export function buildView(
  deps: NodeDeps,
  memory: NodeMemory,
  { name, uid, spec, status }: ReconcileInput,
  facts: NodeFactValues,
): NodeView {
  const keys = keysOf(name, status, facts);
  const refusals = refusalsOf(deps, name, keys);
  const { subnets, ...rest } = facts;
  const claimCallsElsewhere = deps.memory.claimCalls.ofOthers(name);
  return {
    ...rest,
    nodeName: name,
    uid,
    spec,
    status,
    subnets: subnets.map((subnet) => blockIfProbed(deps, name, subnet)),
    blocked: new Set(
      [...refusals.keys()].filter((key) => !isKnownSubnet(facts, key) || isBlockedForNode(deps, name, key)),
    ),
    doubtful: new Set(keys.flatMap(([key, breakerKey]) => (deps.breakers.wasRefusedRecently(breakerKey) ? [key] : []))),
    refusedLast: new Set(keys.flatMap(([key, breakerKey]) => (deps.breakers.wasRefusedLast(breakerKey) ? [key] : []))),
    stuck: stuckOf(deps, memory, status),
    refusals,
    claimCallsElsewhere,
  };
}

/**
 * Blocks a full subnet while another node tries it, whatever its description shows: the description also counts
 * addresses as free that cannot be assigned.
 */
function blockIfProbed({ breakers }: NodeDeps, name: string, subnet: SubnetChoice): SubnetChoice {
  const isRefused = breakers.refusalOf(subnetKey(subnet.subnetId), name) !== undefined;
  return isRefused && !subnet.isBlocked ? { ...subnet, isBlocked: true } : subnet;
}

/**
 * Reports whether the facts contain the subnet: then they decide whether it is blocked, and the breaker only gives the
 * reason.
 */
function isKnownSubnet({ subnets }: NodeFactValues, key: string): boolean {
  return subnets.some((subnet) => subnetKey(subnet.subnetId) === key);
}

function isBlockedForNode({ breakers }: NodeDeps, name: string, key: string): boolean {
  return breakers.refusalOf(nodeKey(name, key), name) !== undefined;
}

/** Key of the view, and key of the breaker. */
type ViewKey = readonly [key: string, breakerKey: string];

function keysOf(name: string, status: NodeEniConfigStatus, facts: NodeFactValues): readonly ViewKey[] {
  const enis = status.eniInfos ?? [];
  const instanceId = facts.instance?.instanceId ?? status.instanceID ?? '';
  const subnetIds = [...facts.subnets.map((one) => one.subnetId), ...enis.flatMap((eni) => eni.subnetID ?? [])];
  const nodeKeys = [
    'call/CreateNetworkInterface',
    ...enis.flatMap((eni) => ENI_ACTIONS.map((action) => `call/${action}/${eni.eniID}`)),
    ...subnetIds.map(subnetKey),
    ...[...(facts.claims?.values() ?? [])].flatMap(claimKeysOf),
  ];
  return [
    ['vpc-enis', 'vpc-enis'],
    ['instance-enis', instanceKey(instanceId)],
    [EXTENSION_ENIS, instanceKey(instanceId, true)],
    ...enis.map((eni) => [`eni-ips/${eni.eniID}`, `eni-ips/${eni.eniID}`] as const),
    ...subnetIds.map((id) => [subnetKey(id), subnetKey(id)] as const),
    ...nodeKeys.map((key) => [key, nodeKey(name, key)] as const),
  ];
}

function claimKeysOf({ key, ip, ips = [] }: ClaimRequest): readonly string[] {
  return [claimKey(key), ...(ip === undefined ? ips : [ip]).map((one) => claimKey(key, one))];
}

function refusalsOf({ breakers }: NodeDeps, name: string, keys: readonly ViewKey[]): ReadonlyMap<string, Refusal> {
  return new Map(
    keys.flatMap(([key, breakerKey]) => {
      const refusal = breakers.refusalOf(breakerKey, name);
      return refusal === undefined ? [] : [[key, refusal] as const];
    }),
  );
}

/** Error codes that no waiting resolves. */
const FORBIDDEN = /^(?:UnauthorizedOperation|AuthFailure|UnsupportedRegion|CREDENTIALS)\b/;

/** A call that the cloud forbids, and how long it is not tried again. */
type ForbiddenCall = { readonly problem: NodeProblem; readonly afterMs: number };

/** Lists the calls for a node that the cloud forbade a moment ago, whether they are still needed or not. */
export function forbiddenCalls(
  deps: NodeDeps,
  { name, status }: Pick<ReconcileInput, 'name' | 'status'>,
  facts: NodeFactValues,
): readonly ForbiddenCall[] {
  const described = [DESCRIBE_CALL, deps.breakers.refusalOf(nodeKey(name, DESCRIBE_CALL), name)] as const;
  const all = [...refusalsOf(deps, name, keysOf(name, status, facts)), described];
  return all.flatMap(([key, refusal]) => {
    if (!key.startsWith('call/') || refusal === undefined || !FORBIDDEN.test(refusal.message)) return [];
    const call = key.slice('call/'.length);
    const message = refusal.message.startsWith('CREDENTIALS')
      ? `there is no key to the cloud for ${call}: ${refusal.message}`
      : `the cloud forbids ${call}: ${refusal.message}`;
    const { requestId, afterMs } = refusal;
    return [{ problem: { reason: 'Forbidden', message, ...(requestId === undefined ? {} : { requestId }) }, afterMs }];
  });
}

function stuckOf({ clock, leader }: NodeDeps, memory: NodeMemory, status: NodeEniConfigStatus): ReadonlySet<string> {
  const nowMs = clock.monotonicMs();
  const intents = status.intents ?? [];
  // Longer than an inherited call is left unresolved, and longer than any call that is answered.
  const longMs = ({ requestTimeoutSeconds }: Intent) => leader.term.leaseMs + 2_000 * requestTimeoutSeconds;
  const overdue = intents.filter((intent) => nowMs - (memory.intentSinceMs.get(intent.id) ?? nowMs) > longMs(intent));
  const busy = new Set(intents.map((intent) => intent.eniID));
  const idle = (status.eniInfos ?? []).filter((eni) => {
    const sinceMs = memory.attachingSinceMs.get(eni.eniID) ?? nowMs;
    return eni.state === 'Attaching' && !busy.has(eni.eniID) && nowMs - sinceMs > STUCK_ATTACHING_MS;
  });
  return new Set([
    ...overdue.flatMap(({ id, eniID }) => [id, ...(eniID === undefined ? [] : [eniID])]),
    ...idle.map((eni) => eni.eniID),
  ]);
}
