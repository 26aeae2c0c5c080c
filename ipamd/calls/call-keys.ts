import type { CloudError } from '../../cloud/cloud-error.ts';
import type { NodeEniConfigStatus } from '../../crd/node-eni-config-fields.ts';
import type { Intent } from '../decide/decision.ts';
import { EXTENSION_ENIS } from '../decide/node-view.ts';
import { isForExtension } from '../decide/with-enis.ts';

/** The breakers of one call: of the quotas that it uses, by the name that the cloud's error gives, and its own. */
type CallKeys = {
  /** Key in `NodeView.blocked` -> key of the process-wide breaker, which nodes share as they share the quota. */
  readonly shared: ReadonlyMap<string, string>;
  /** Keys that a refusal without a quota blocks, for this node alone; the call itself first. */
  readonly own: readonly [string, ...string[]];
};

/** Key for descriptions of ENIs. Its breaker blocks nothing; it explains why nothing is known. */
export const DESCRIBE_CALL = 'call/DescribeNetworkInterfaces';

/** Returns the breaker keys of an intent's call. */
export function callKeysOf(node: string, intent: Intent, status: NodeEniConfigStatus): CallKeys {
  const { action, eniID } = intent;
  const subnetId = intent.subnetID ?? status.eniInfos?.find((eni) => eni.eniID === eniID)?.subnetID ?? '';
  const instanceId = intent.instanceID ?? status.instanceID ?? '';
  const own = [nodeKey(node, `call/${action}/${eniID}`)] as const;
  // A refusal of one static address blocks neither the ENI nor the addresses of other claims.
  const ofClaim = intent.claim === undefined ? undefined : nodeKey(node, claimKey(intent.claim, intent.ips?.[0]));
  switch (action) {
    case 'CreateNetworkInterface':
      // Another subnet may be suitable where this one is not.
      return {
        own: [
          nodeKey(node, 'call/CreateNetworkInterface'),
          nodeKey(node, subnetKey(subnetId)),
          ...(ofClaim === undefined ? [] : [ofClaim]),
        ],
        shared: sharedOf(['vpc-enis', subnetKey(subnetId)]),
      };
    case 'AttachNetworkInterface':
      return {
        own,
        shared: isForExtension(status, eniID ?? '')
          ? new Map([[EXTENSION_ENIS, instanceKey(instanceId, true)]])
          : new Map([['instance-enis', instanceKey(instanceId)]]),
      };
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

/**
 * Returns the key of the call that a finished call made possible: the cloud refuses to delete an ENI while it is
 * attached. Undefined for other calls.
 */
export function keyMadePossibleBy(node: string, { action, eniID }: Intent): string | undefined {
  return action === 'DetachNetworkInterface' ? nodeKey(node, `call/DeleteNetworkInterface/${eniID}`) : undefined;
}

/** Returns the keys of process-wide breakers whose quota a finished call has freed. */
export function keysFreedBy(intent: Intent, status: NodeEniConfigStatus): readonly string[] {
  const { action, eniID } = intent;
  const subnetId = status.eniInfos?.find((eni) => eni.eniID === eniID)?.subnetID;
  const subnet = subnetId === undefined ? [] : [subnetKey(subnetId)];
  switch (action) {
    case 'DeleteNetworkInterface':
      return ['vpc-enis', ...subnet];
    case 'DetachNetworkInterface':
      return [instanceKey(intent.instanceID ?? status.instanceID ?? '', isForExtension(status, eniID ?? ''))];
    case 'UnassignPrivateIpAddresses':
      return [`eni-ips/${eniID}`, ...subnet];
    default:
      return [];
  }
}

/** Returns the breaker key for an exhausted quota; the call's own key when the quota is unknown. */
export function exhaustedKey(keys: CallKeys, error: CloudError): string {
  const prefix = error.scope === 'subnet' ? 'subnet/' : (error.scope ?? '');
  const found = [...keys.shared].find(([key]) => prefix !== '' && key.startsWith(prefix));
  return found?.[1] ?? keys.own[0];
}

/** Returns the key of something that is blocked for one node alone. */
export function nodeKey(node: string, key: string): string {
  return `node/${node}/${key}`;
}

/** Returns the key of a refusal for one static address, or of a refusal for any address of a claim. */
export function claimKey(claim: string, ip?: string): string {
  return ip === undefined ? `claim/${claim}` : `claim/${claim}/${ip}`;
}

/** Returns the key of a full subnet. */
export function subnetKey(subnetId: string): string {
  return `subnet/${subnetId}`;
}

/** Returns the key of an instance that accepts no more ENIs on places of a type: standard ones, or the extension type. */
export function instanceKey(instanceId: string, isExtension = false): string {
  return `instance-enis/${instanceId}${isExtension ? '/extension' : ''}`;
}

function sharedOf(keys: readonly string[]): ReadonlyMap<string, string> {
  return new Map(keys.map((key) => [key, key]));
}
