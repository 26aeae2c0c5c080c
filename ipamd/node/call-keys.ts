import type { CloudError } from '../../cloud/cloud-error.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from '../nec/decision.ts';

/** The breakers of one call: of what it needs, by what the cloud may say is exhausted, and its own. */
export type CallKeys = {
  /** By the key in `NodeView.blocked`: the key in the process's book, where nodes share what they share. */
  readonly shared: ReadonlyMap<string, string>;
  /** What a refusal that is no quota blocks, for this node alone; the call itself first. */
  readonly own: readonly [string, ...string[]];
};

/** Of descriptions of ENIs. It stops nobody, and tells why nothing is known. */
export const DESCRIBE_CALL = 'call/DescribeNetworkInterfaces';

/** Names the breakers of an intent's call. Pure. */
export function callKeysOf(node: string, intent: Intent, status: NodeEniConfigStatus): CallKeys {
  const { action, eniID } = intent;
  const subnetId = intent.subnetID ?? status.eniInfos?.find((eni) => eni.eniID === eniID)?.subnetID ?? '';
  const instanceId = intent.instanceID ?? status.instanceID ?? '';
  const own = [ownKey(node, `call/${action}/${eniID}`)] as const;
  // What is refused of one kept address is no word about the ENI, nor about another's.
  const ofClaim = intent.claim === undefined ? undefined : ownKey(node, claimKey(intent.claim, intent.ips?.[0]));
  switch (action) {
    case 'CreateNetworkInterface':
      // Another subnet may do where this one does not.
      return {
        own: [
          ownKey(node, 'call/CreateNetworkInterface'),
          ownKey(node, subnetKey(subnetId)),
          ...(ofClaim === undefined ? [] : [ofClaim]),
        ],
        shared: sharedOf(['vpc-enis', subnetKey(subnetId)]),
      };
    case 'AttachNetworkInterface':
      return { own, shared: new Map([['instance-enis', instanceKey(instanceId)]]) };
    case 'AssignPrivateIpAddresses':
      return {
        own: ofClaim === undefined ? own : [ofClaim],
        shared: sharedOf([`eni-ips/${eniID}`, subnetKey(subnetId)]),
      };
    case 'MigratePrivateIpAddress':
      return { own: ofClaim === undefined ? own : [ofClaim], shared: sharedOf([`eni-ips/${intent.targetENIID}`]) };
    default:
      return { own, shared: new Map() };
  }
}

/** Names the breakers in the process's book of what a call makes room in when it is done. Pure. */
export function keysFreedBy(intent: Intent, status: NodeEniConfigStatus): readonly string[] {
  const { action, eniID } = intent;
  const subnetId = status.eniInfos?.find((eni) => eni.eniID === eniID)?.subnetID;
  const subnet = subnetId === undefined ? [] : [subnetKey(subnetId)];
  switch (action) {
    case 'DeleteNetworkInterface':
      return ['vpc-enis', ...subnet];
    case 'DetachNetworkInterface':
      return [instanceKey(intent.instanceID ?? status.instanceID ?? '')];
    case 'UnassignPrivateIpAddresses':
      return [`eni-ips/${eniID}`, ...subnet];
    default:
      return [];
  }
}

/** The key of the book that an exhausted quota opens; the call's own when the quota is none that we know. Pure. */
export function exhaustedKey(keys: CallKeys, error: CloudError): string {
  const wanted = error.scope === 'subnet' ? 'subnet/' : (error.scope ?? '');
  const found = [...keys.shared].find(([key]) => wanted !== '' && key.startsWith(wanted));
  return found?.[1] ?? keys.own[0];
}

/** The key of what one node alone may not do for a while. */
export function ownKey(node: string, key: string): string {
  return `node/${node}/${key}`;
}

/** The key of what the cloud refuses of one kept address, or of any for a claim: the next address is another matter. */
export function claimKey(claim: string, ip?: string): string {
  return ip === undefined ? `claim/${claim}` : `claim/${claim}/${ip}`;
}

/** The key of a full subnet. */
export function subnetKey(subnetId: string): string {
  return `subnet/${subnetId}`;
}

/** The key of an instance that takes no more ENIs. */
export function instanceKey(instanceId: string): string {
  return `instance-enis/${instanceId}`;
}

function sharedOf(keys: readonly string[]): ReadonlyMap<string, string> {
  return new Map(keys.map((key) => [key, key]));
}
