import type { Eni, Tags } from '../../cloud/cloud.ts';
import { parseCidr } from '../../crd/ip-text.ts';
import type { SeenEni } from '../nec/decision.ts';
import { MODE_TAG } from '../nec/direct-creation.ts';

/** Whose ENI it would be. */
export type EniOwner = {
  readonly clusterId: string;
  readonly uid: string;
  readonly instanceId: string | undefined;
  /** Tells of an ENI and its tags whether another object that there is goes by them. Default: none does. */
  readonly isOthers?: (tags: Tags, eniId: string) => boolean;
};

/**
 * Puts a described ENI into the words of the NodeENIConfig. Its owner's is what carries the cluster's tag and either the
 * object's uid or is on the node's instance; anything else there is foreign. So is what another object goes by its tag: an
 * instance whose node has another name than before has two for a while. Pure.
 */
export function seeEni(eni: Eni, subnetCidr: string, owner: EniOwner): SeenEni {
  const secondary = eni.ips.filter((ip) => !ip.isPrimary);
  const there = secondary.filter((ip) => ip.state === 'AVAILABLE');
  const { attachment } = eni;
  return {
    eniID: eni.eniId,
    mac: eni.mac,
    name: eni.name,
    primaryIP: eni.ips.find((ip) => ip.isPrimary)?.ip ?? '',
    subnetID: eni.subnetId,
    subnetCIDR: subnetCidr,
    gateway: gatewayOf(subnetCidr),
    state: eni.state,
    ...(attachment === undefined ? {} : { instanceID: attachment.instanceId, deviceIndex: attachment.deviceIndex }),
    securityGroups: eni.securityGroupIds,
    ips: there.map((ip) => ip.ip),
    pendingIps: secondary.filter((ip) => ip.state !== 'AVAILABLE').map((ip) => ip.ip),
    ...(eni.tags[MODE_TAG.name] === MODE_TAG.direct ? { mode: MODE_TAG.direct } : {}),
    ...(isOwn(eni, owner) ? {} : { isForeign: true }),
    ...(owner.isOthers?.(eni.tags, eni.eniId) === true ? { isForeign: true, isOthers: true } : {}),
  };
}

function isOwn({ tags, attachment }: Eni, { clusterId, uid, instanceId }: EniOwner): boolean {
  if (tags['tke-clusterId'] !== clusterId) return false;
  return tags['tke-nec-uid'] === uid || (attachment !== undefined && attachment.instanceId === instanceId);
}

/** The cloud's gateway is the first address of a subnet. '' for what is no IPv4 network. */
export function gatewayOf(cidr: string): string {
  const parsed = parseCidr(cidr);
  if (parsed === undefined || parsed.family !== 4) return '';
  const bytes = parsed.address.split('.').map(Number);
  // A network ends in a zero bit, so that nothing carries over.
  return [...bytes.slice(0, 3), (bytes[3] ?? 0) + 1].join('.');
}
