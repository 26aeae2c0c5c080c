import { intent as intentValue } from '../../../crd/intent.ts';
import {
  DIRECT_ENI_TAINT,
  ENI_IP_RESOURCE,
  ENI_IP_TAINT,
  NODE_ANNOTATION,
  NODE_ENI_CONFIG_ANNOTATION,
  RECORD_LABEL,
  STARTUP_TAINT_KEY,
} from '../../../crd/names.ts';
import { hasPodEnded, readPodIps, requestsResource } from '../../../crd/pod-fields.ts';
import { readNodeEniConfig } from '../../../crd/read-node-eni-config.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { Faults } from '../../../runtime/decode.ts';
import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type {
  ClaimStatus,
  ClusterClaim,
  ClusterEip,
  ClusterNec,
  ClusterNode,
  ClusterPod,
  ClusterVeni,
  ClusterVip,
  Identity,
  WorkIntent,
} from './cluster-facts.ts';

/** Decodes a NodeENIConfig. Of a malformed one it returns the valid fields and a list of the malformed ones. */
export function decodeNec(object: KubeObject): ClusterNec {
  const read = readNodeEniConfig(object);
  const registeredIps = read?.config.loadBalancers?.registeredIPs;
  const faults = read?.faults.map(({ path, expected }) => `${path}: not ${expected}`) ?? ['it has no usable name'];
  return {
    ...identityOf(object),
    spec: read?.config.spec ?? {},
    status: read?.config.status ?? {},
    ...(registeredIps === undefined ? {} : { registeredIps }),
    faults,
    settings: settingsOf(object, Object.values(NODE_ENI_CONFIG_ANNOTATION)),
  };
}

const OUR_TAINTS: readonly string[] = [ENI_IP_TAINT.key, DIRECT_ENI_TAINT.key, STARTUP_TAINT_KEY];

/** Decodes a Node. */
export function decodeNode(object: KubeObject): ClusterNode {
  const spec = recordOf(object['spec']);
  const conditions = recordsOf(recordOf(object['status'])['conditions']);
  return {
    ...identityOf(object),
    isReady: conditions.some((one) => one['type'] === 'Ready' && one['status'] === 'True'),
    taints: OUR_TAINTS.filter((key) => recordsOf(spec['taints']).some((one) => one['key'] === key)),
    podCidrs: textsOf(spec['podCIDRs']),
    network: networkOf(conditions.find((one) => one['type'] === 'NetworkUnavailable')),
    settings: settingsOf(object, Object.values(NODE_ANNOTATION)),
  };
}

function networkOf(condition: Readonly<Record<string, unknown>> | undefined): ClusterNode['network'] {
  if (condition === undefined || condition['status'] === 'Unknown') return undefined;
  const { status, reason, message } = condition;
  return { isUnavailable: status === 'True', reason: textOf(reason), message: textOf(message) };
}

/**
 * Decodes a Pod. Returns undefined for a Pod in its node's network, without a node, or completed: it has no address of
 * ours.
 */
export function decodePod(object: KubeObject): ClusterPod | undefined {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const nodeName = textOf(spec['nodeName']);
  if (nodeName === '' || spec['hostNetwork'] === true || hasPodEnded(status)) return undefined;
  const [ips, asksEniIp] = [readPodIps(status).map(canonicalAddress), requestsResource(spec, ENI_IP_RESOURCE)];
  return { ...identityOf(object), finalizers: NONE, nodeName, ips, asksEniIp };
}

/** Decodes a VpcIP; malformed fields count as absent. */
export function decodeVip(object: KubeObject): ClusterVip {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const pod = recordOf(spec['claimRef']);
  return {
    ...identityOf(object),
    isEnis: spec['type'] === 'ENI',
    ip: canonicalAddress(textOf(spec['ip'])),
    podKey: podKeyOf(pod),
    podUid: textOf(pod['uid']),
    isRecord: isRecordOfPod(object),
    subnetId: textOf(spec['subnetID']),
    nodeName: textOf(spec['nodeName']),
    eniId: textOf(status['eniID']),
    intents: intentsOf(status['intent'] === undefined ? undefined : [status['intent']]),
  };
}

/** Decodes a VpcIPClaim; malformed fields count as absent. */
export function decodeClaim(object: KubeObject): ClusterClaim {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const claimStatus = claimStatusOf(status);
  return {
    ...identityOf(object),
    ...claimStatus,
    podUid: textOf(spec['podUID']),
    isRetained: spec['deletePolicy'] === 'Never' || claimStatus.phase === 'Retained',
    isRecord: isRecordOfPod(object),
    ips: textsOf(status['ips']).map(canonicalAddress),
    nodeName: textOf(status['nodeName']),
  };
}

function isRecordOfPod({ metadata }: KubeObject): boolean {
  return metadata.labels?.[RECORD_LABEL.key] !== undefined;
}

function claimStatusOf(status: Readonly<Record<string, unknown>>): ClaimStatus {
  const ready = recordsOf(status['conditions']).find((one) => one['type'] === 'Ready');
  return {
    phase: textOf(status['phase']),
    message: textOf(status['message']),
    sinceMs: timeOf(textOf(ready?.['lastTransitionTime'])) ?? 0,
    retainedMs: timeOf(textOf(status['retainedSince'])),
  };
}

/** Decodes a VpcENI; malformed fields count as absent. */
export function decodeVeni(object: KubeObject): ClusterVeni {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  return {
    ...identityOf(object),
    nodeName: textOf(spec['nodeName']),
    eniId: textOf(status['eniID']),
    podKey: podKeyOf(recordOf(spec['claimRef'])),
    isRetained: status['retainedSince'] !== undefined,
    isExclusive: spec['mode'] === 'direct-eni',
    phase: textOf(status['phase']),
    intents: intentsOf(status['intents']),
  };
}

/** Decodes an EIPClaim; malformed fields count as absent. */
export function decodeEip(object: KubeObject): ClusterEip {
  const spec = recordOf(object['spec']);
  const status = recordOf(object['status']);
  const claimStatus = claimStatusOf(status);
  return {
    ...identityOf(object),
    ...claimStatus,
    isRetained: spec['deletePolicy'] === 'Never' || claimStatus.phase === 'Retained',
    publicIp: textOf(status['publicIP']),
    nodeName: textOf(status['nodeName']),
    intents: intentsOf(status['intents']),
  };
}

/** Shared empty list: most objects have no intents and no finalizers. */
const NONE: readonly never[] = Object.freeze([]);

function identityOf({ metadata }: KubeObject): Identity {
  const { name, namespace, uid, deletionTimestamp, creationTimestamp, finalizers } = metadata;
  return {
    key: namespace === undefined ? name : `${namespace}/${name}`,
    uid: uid ?? '',
    createdMs: timeOf(creationTimestamp) ?? 0,
    deletionRequestedMs: timeOf(deletionTimestamp),
    finalizers: finalizers ?? NONE,
  };
}

function intentsOf(value: unknown): readonly WorkIntent[] {
  if (value === undefined) return NONE;
  return recordsOf(value).flatMap((one) => {
    const read = intentValue.decoder(one, '', new Faults());
    return read === undefined ? [] : [workIntentOf(read)];
  });
}

type Intent = NonNullable<ReturnType<typeof intentValue.decoder>>;

/** Returns the fields of an intent that describe its progress. */
export function workIntentOf(intent: Intent): WorkIntent {
  const { id, action, phase, recordedAt, resourceName = '', eniID = '', tries = 0, lastError } = intent;
  const why = lastError === undefined ? '' : `${lastError.code}: ${lastError.message}`;
  return {
    id,
    action,
    phase,
    recordedMs: timeOf(recordedAt) ?? 0,
    resourceName,
    eniId: eniID,
    tries,
    lastError: why,
  };
}

function settingsOf({ metadata }: KubeObject, names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const value = metadata.annotations?.[name];
    return value === undefined ? [] : [`${name.slice(name.indexOf('/') + 1)}=${value}`];
  });
}

function podKeyOf(reference: Readonly<Record<string, unknown>>): string {
  return reference['name'] === undefined ? '' : `${textOf(reference['namespace'])}/${textOf(reference['name'])}`;
}

function timeOf(value: string | undefined): number | undefined {
  const ms = value === undefined ? Number.NaN : Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}
