import type { Instance } from '../../cloud/cloud.ts';
import type { EniLimits } from '../../cloud/eni-limits.ts';
import { API_VERSION, APPLIED_POLICY_ANNOTATION, CLOUD_FINALIZER, NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { MAX_GROWTH } from '../../crd/value.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { recordOf } from '../../runtime/json.ts';
import type { INSTANCE_FIELDS } from '../decide/undo-edit.ts';
import { type Policy, renderApplied } from './decide-policy.ts';
import { findMaxEips } from './find-max-eips.ts';

/** Warm targets of a new node. */
type NewNodeTargets = {
  readonly ipMinWarmTarget: number;
  readonly ipMaxWarmTarget: number;
  readonly eniMinWarmTarget: number;
  readonly eniMaxWarmTarget: number;
};

/**
 * Annotation of a NodeENIConfig: its ENIs' security groups are being set again. It has the same name as the Node's
 * annotation.
 */
export const GROUP_SYNC_MARK = NODE_ANNOTATION.syncSecurityGroups;

/**
 * Builds the NodeENIConfig of a joining node. `lastEpoch` is the supply epoch of an earlier object of the node that was
 * lost or let go; 0 when it is unknown. Then the object says that a state was seen that it does not have, so that its
 * status is rebuilt from the cloud, with a higher epoch, before anything is decided.
 *
 * It has no owner reference to its Node. The garbage collector goes by uid: when a kubelet registers its node again
 * while its Pods run on, the collector would delete this object although the node exists, and the ENIs would be
 * drained. ipamd itself deletes the object when the Node is deleted, and the finalizer keeps it until nothing is left
 * in the cloud.
 */
export function newConfig(
  name: string,
  instance: Instance,
  limits: EniLimits,
  policy: Policy,
  targets: NewNodeTargets,
  lastEpoch?: number,
): KubeObject {
  const spec: NodeEniConfigSpec = {
    ...definedOf(policy.fields),
    routeENIIPMinWarmTarget: targets.ipMinWarmTarget,
    routeENIIPMaxWarmTarget: targets.ipMaxWarmTarget,
    directENIMinWarmTarget: targets.eniMinWarmTarget,
    directENIMaxWarmTarget: targets.eniMaxWarmTarget,
    ...(lastEpoch === undefined ? {} : { observedSupplyEpoch: Math.min(lastEpoch + 1, MAX_GROWTH) }),
  };
  return {
    apiVersion: API_VERSION,
    kind: NODE_ENI_CONFIG_KIND.kind,
    metadata: {
      name,
      finalizers: [CLOUD_FINALIZER],
      annotations: { [APPLIED_POLICY_ANNOTATION]: renderApplied(policy.applied) },
    },
    spec,
    status: identityOf(instance, limits),
  };
}

type Identity = Pick<NodeEniConfigStatus, 'instanceID' | (typeof INSTANCE_FIELDS)[number]>;

/** Builds the part of the status that names the instance, and the fields that depend on the instance alone. */
function identityOf(instance: Instance, { secondaryEnis, extensionEnis }: EniLimits): Identity {
  return {
    instanceID: instance.instanceId,
    ...(instance.instanceType === '' ? {} : { instanceType: instance.instanceType }),
    zone: instance.zone,
    vpcID: instance.vpcId,
    instanceENIs: secondaryEnis,
    ...(extensionEnis > 0 ? { extensionENIs: extensionEnis } : {}),
    ...(instance.cores > 0 ? { maxEIPs: findMaxEips(instance.cores) } : {}),
  };
}

/** Returns the object with the policy and the instance in it; everything else is unchanged. */
export function withPolicy(object: KubeObject, policy: Policy, instance: Instance, limits: EniLimits): KubeObject {
  const spec = { ...recordOf(object['spec']), ...definedOf(policy.fields) };
  const absent = Object.entries(policy.fields).flatMap(([key, value]) => (value === undefined ? [key] : []));
  const fields = Object.fromEntries(Object.entries(spec).filter(([key]) => !absent.includes(key)));
  const { extensionENIs: _former, ...before } = recordOf(object['status']);
  const status = { ...before, ...identityOf(instance, limits) };
  const marked = withAnnotation(object, APPLIED_POLICY_ANNOTATION, renderApplied(policy.applied));
  return { ...marked, spec: fields, status };
}

/** Reports whether a status names the instance as it is now. */
export function isIdentityInForce(
  status: NodeEniConfigStatus | undefined,
  instance: Instance,
  limits: EniLimits,
): boolean {
  const identity: Readonly<Record<string, unknown>> = { extensionENIs: undefined, ...identityOf(instance, limits) };
  const current: Readonly<Record<string, unknown>> = status ?? {};
  return Object.entries(identity).every(([key, value]) => current[key] === value);
}

/** Returns the object with one annotation set, or removed where `value` is undefined. */
export function withAnnotation(object: KubeObject, name: string, value: string | undefined): KubeObject {
  const { [name]: _before, ...others } = object.metadata.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [name]: value };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function definedOf(fields: Policy['fields']): NodeEniConfigSpec {
  // Entries of `fields` itself, without those that have no value.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as NodeEniConfigSpec;
}
