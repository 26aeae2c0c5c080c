import type { Instance } from '../../cloud/cloud.ts';
import { API_VERSION, APPLIED_POLICY_ANNOTATION, CLOUD_FINALIZER, NODE_ANNOTATION } from '../../crd/names.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isRecord } from '../../runtime/decode.ts';
import { findMaxEips } from '../eip/find-max-eips.ts';
import { type Policy, renderApplied } from './decide-policy.ts';

/** Warm targets that a new node begins with. */
export type NewNodeTargets = {
  readonly ipMinWarmTarget: number;
  readonly ipMaxWarmTarget: number;
  readonly eniMinWarmTarget: number;
  readonly eniMaxWarmTarget: number;
};

/** The mark on a NodeENIConfig that its ENIs' security groups are being set anew; as the Node's annotation, of that name. */
export const GROUP_SYNC_MARK = NODE_ANNOTATION.syncSecurityGroups;

/**
 * Makes the NodeENIConfig of a node that joins.
 *
 * It has no owner reference to its Node. The garbage collector goes by uid: a kubelet that registers its node anew, while
 * its Pods run on, would have it delete this object although the node lives, and the ENIs would be drained. ipamd itself
 * deletes it when the Node is gone, and the finalizer keeps it until the cloud has everything back.
 */
export function newConfig(name: string, instance: Instance, policy: Policy, targets: NewNodeTargets): KubeObject {
  const spec: NodeEniConfigSpec = {
    ...definedOf(policy.fields),
    routeENIIPMinWarmTarget: targets.ipMinWarmTarget,
    routeENIIPMaxWarmTarget: targets.ipMaxWarmTarget,
    directENIMinWarmTarget: targets.eniMinWarmTarget,
    directENIMaxWarmTarget: targets.eniMaxWarmTarget,
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
    status: identityOf(instance),
  };
}

/** The part of the status that says which instance it is about, and what of it hangs on the instance alone. */
export function identityOf(instance: Instance): NodeEniConfigStatus {
  return {
    instanceID: instance.instanceId,
    ...(instance.instanceType === '' ? {} : { instanceType: instance.instanceType }),
    zone: instance.zone,
    vpcID: instance.vpcId,
    ...(instance.cores > 0 ? { maxEIPs: findMaxEips(instance.cores) } : {}),
  };
}

/** Returns the object with policy in force and the instance that it is about; all else as it was. Pure. */
export function withPolicy(object: KubeObject, policy: Policy, instance: Instance): KubeObject {
  const spec = { ...recordOf(object['spec']), ...definedOf(policy.fields) };
  const absent = Object.entries(policy.fields).flatMap(([key, value]) => (value === undefined ? [key] : []));
  const kept = Object.fromEntries(Object.entries(spec).filter(([key]) => !absent.includes(key)));
  const status = { ...recordOf(object['status']), ...identityOf(instance) };
  const marked = withAnnotation(object, APPLIED_POLICY_ANNOTATION, renderApplied(policy.applied));
  return { ...marked, spec: kept, status };
}

/** Tells whether a status says which instance it is about, as it is now. Pure. */
export function isIdentityInForce(status: NodeEniConfigStatus | undefined, instance: Instance): boolean {
  const identity = Object.entries(identityOf(instance));
  const told: Readonly<Record<string, unknown>> = status ?? {};
  return identity.every(([key, value]) => told[key] === value);
}

/** Returns the object with one annotation set, or taken off where `value` is undefined. Pure. */
export function withAnnotation(object: KubeObject, name: string, value: string | undefined): KubeObject {
  const { [name]: _before, ...others } = object.metadata.annotations ?? {};
  const annotations = value === undefined ? others : { ...others, [name]: value };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function definedOf(fields: Policy['fields']): NodeEniConfigSpec {
  // Entries of `fields` itself, less those without a value.
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as NodeEniConfigSpec;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
