import { APPLIED_POLICY_ANNOTATION, NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeSettings } from '../../crd/node-eni-config-annotations.ts';
import type { NodeEniConfigSpec } from '../../crd/node-eni-config-fields.ts';
import { recordOf } from '../../runtime/json.ts';
import type { NodeEntry } from '../cache/node-entry.ts';

/** The fields of the spec that policy writes and that people may write. */
type PolicyFields = Pick<
  NodeEniConfigSpec,
  'maxRouteENI' | 'maxIPPerENI' | 'maxDirectENI' | 'desiredRouteENIPodNum' | 'enableStaticIP'
>;

/** What policy wrote last: the fields, and the warm targets that an event last reported. */
export type AppliedPolicy = PolicyFields & { readonly routeWarm?: string };

/** What policy depends on. */
export type PolicyFacts = {
  /** Limits of the instance. */
  readonly limits: { readonly secondaryEnis: number; readonly secondaryIpsPerEni: number };
  /** Whether the node serves exclusive ENIs, and their limit on its instance. Default: it serves none. */
  readonly exclusive?: { readonly isServed: boolean; readonly limit: number };
  /** Accepted annotations of the NodeENIConfig. */
  readonly settings: NodeSettings;
  /** From the Node's annotation; undefined when there is none. */
  readonly desiredPodNum: number | undefined;
  /** Pods of the node may have static addresses, by its label or the flag. Default: they may not. */
  readonly isStatic?: boolean;
  readonly spec: NodeEniConfigSpec;
  readonly applied: AppliedPolicy;
};

/** What policy requires; undefined fields are absent. */
export type Policy = {
  readonly fields: { readonly [K in keyof PolicyFields]-?: PolicyFields[K] | undefined };
  readonly applied: AppliedPolicy;
};

/**
 * Decides the policy fields of a spec: the limits of the instance, lowered by annotations, and the minimum of addresses
 * from the Node. A field whose value is not what policy wrote last was set by a person: it stays, but not above the
 * limit of the instance. Idempotent: the same facts again change nothing.
 */
export function decidePolicy(facts: PolicyFacts): Policy {
  const { limits, settings, spec, applied } = facts;
  const enis = resolve(spec.maxRouteENI, applied.maxRouteENI, minOf(limits.secondaryEnis, settings.routeMaxAttach));
  const ips = resolve(spec.maxIPPerENI, applied.maxIPPerENI, minOf(limits.secondaryIpsPerEni, settings.maxIpPerEni));
  const exclusiveLimit = facts.exclusive?.limit ?? limits.secondaryEnis;
  const exclusiveMax = facts.exclusive?.isServed === true ? minOf(exclusiveLimit, settings.directMaxAttach) : undefined;
  const exclusive = resolve(spec.maxDirectENI, applied.maxDirectENI, exclusiveMax);
  const pods = resolve(spec.desiredRouteENIPodNum, applied.desiredRouteENIPodNum, facts.desiredPodNum);
  // Absent means no: a cluster without static addresses costs no write.
  const staticIp = resolve(spec.enableStaticIP, applied.enableStaticIP, facts.isStatic === true ? true : undefined);
  const fields = {
    maxRouteENI: bounded(enis.value, limits.secondaryEnis),
    maxIPPerENI: bounded(ips.value, limits.secondaryIpsPerEni),
    maxDirectENI: bounded(exclusive.value, exclusiveLimit),
    desiredRouteENIPodNum: pods.value,
    enableStaticIP: staticIp.value,
  };
  const newApplied: AppliedPolicy = {
    ...present('maxRouteENI', enis.isOurs ? enis.value : undefined),
    ...present('maxIPPerENI', ips.isOurs ? ips.value : undefined),
    ...present('maxDirectENI', exclusive.isOurs ? exclusive.value : undefined),
    ...present('desiredRouteENIPodNum', pods.isOurs ? pods.value : undefined),
    ...present('enableStaticIP', staticIp.isOurs ? staticIp.value : undefined),
    ...present('routeWarm', renderWarm(settings)),
  };
  return { fields, applied: newApplied };
}

type Resolved<T> = { readonly value: T | undefined; readonly isOurs: boolean };

function resolve<T>(current: T | undefined, applied: T | undefined, required: T | undefined): Resolved<T> {
  const isOurs = current === undefined || current === applied;
  return { value: isOurs ? required : current, isOurs };
}

function minOf(limit: number, annotated: number | undefined): number {
  return Math.min(limit, annotated ?? limit);
}

function bounded(value: number | undefined, limit: number): number | undefined {
  return value === undefined ? undefined : Math.min(value, limit);
}

function renderWarm({ routeWarm }: NodeSettings): string | undefined {
  return routeWarm === undefined ? undefined : `${routeWarm.min}/${routeWarm.max}`;
}

function present<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  // Either empty, or exactly the one key.
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T };
}

/** Reports whether policy would change anything. */
export function isPolicyInForce(spec: NodeEniConfigSpec, applied: AppliedPolicy, policy: Policy): boolean {
  const { fields } = policy;
  return (
    spec.maxRouteENI === fields.maxRouteENI &&
    spec.maxIPPerENI === fields.maxIPPerENI &&
    spec.maxDirectENI === fields.maxDirectENI &&
    spec.desiredRouteENIPodNum === fields.desiredRouteENIPodNum &&
    spec.enableStaticIP === fields.enableStaticIP &&
    renderApplied(applied) === renderApplied(policy.applied)
  );
}

/** Renders what policy applied, as {@link APPLIED_POLICY_ANNOTATION} contains it. */
export function renderApplied(applied: AppliedPolicy): string {
  const { maxRouteENI, maxIPPerENI, maxDirectENI, desiredRouteENIPodNum, enableStaticIP, routeWarm } = applied;
  return JSON.stringify({ maxRouteENI, maxIPPerENI, maxDirectENI, desiredRouteENIPodNum, enableStaticIP, routeWarm });
}

/** Reads what policy applied. An unreadable value counts as not applied: the spec then stays as people wrote it. */
export function readApplied(annotations: Readonly<Record<string, unknown>> | undefined): AppliedPolicy {
  const read = parsed(annotations?.[APPLIED_POLICY_ANNOTATION]);
  const number = (key: string): number | undefined => {
    const value = read[key];
    return typeof value === 'number' ? value : undefined;
  };
  const routeWarm = read['routeWarm'];
  return {
    ...present('maxRouteENI', number('maxRouteENI')),
    ...present('maxIPPerENI', number('maxIPPerENI')),
    ...present('maxDirectENI', number('maxDirectENI')),
    ...present('desiredRouteENIPodNum', number('desiredRouteENIPodNum')),
    ...present('enableStaticIP', read['enableStaticIP'] === true ? true : undefined),
    ...present('routeWarm', typeof routeWarm === 'string' ? routeWarm : undefined),
  };
}

function parsed(text: unknown): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
    return recordOf(value);
  } catch {
    return {};
  }
}

/** More than any node has. */
const MAX_PODS = 64 * 4096;

/** Reads the minimum of addresses that a Node requests; `isGood` is false when the annotation is not a number. */
export function readDesiredPodNum(annotations: Readonly<Record<string, string>>): {
  readonly value: number | undefined;
  readonly isValid: boolean;
} {
  const text = annotations[NODE_ANNOTATION.desiredPodNum];
  if (text === undefined) return { value: undefined, isValid: true };
  const isValid = /^[0-9]{1,6}$/.test(text) && Number(text) <= MAX_PODS;
  return { value: isValid ? Number(text) : undefined, isValid };
}

/**
 * Reports whether Pods of a node may have static addresses: by its label, if that is true or false, else by the flag.
 * `auto` allows them on nodes of a hybrid cluster, which have another network for other Pods.
 */
export function isStaticNode(
  { staticIpLabel, podCidrs }: Pick<NodeEntry, 'staticIpLabel' | 'podCidrs'>,
  flag: 'auto' | 'true' | 'false',
): boolean {
  if (staticIpLabel === 'true' || staticIpLabel === 'false') return staticIpLabel === 'true';
  return flag === 'auto' ? podCidrs.length > 0 : flag === 'true';
}
