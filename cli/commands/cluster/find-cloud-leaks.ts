import type { Eni } from '../../../cloud/cloud.ts';
import { ENI_TAG, isOwnEni } from '../../../crd/cloud-tags.ts';
import type { NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { eniId as eniSubject } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NecAddress } from './build-address-index.ts';
import type { CloudFacts, ClusterFacts, ClusterNec } from './cluster-facts.ts';

/**
 * Returns ENIs and addresses that exist only in the cloud or only in the objects; [] when the cloud was not requested.
 */
export function findCloudLeaks(
  facts: ClusterFacts,
  index: ReadonlyMap<string, readonly NecAddress[]>,
  graceMs: number,
): readonly Finding[] {
  const cloud = facts.cloud === undefined ? undefined : ifKnown(facts.cloud);
  if (cloud === undefined) return [];
  const byId = new Map(cloud.enis.map((eni) => [eni.eniId, eni]));
  return [
    ...findOrphans(facts, cloud, graceMs),
    ...facts.necs.flatMap((nec) => necFindings(nec, byId, index)),
    ...duplicatesInCloud(cloud.enis),
  ];
}

function findOrphans(facts: ClusterFacts, { clusterId, enis }: CloudFacts, graceMs: number): readonly Finding[] {
  if (clusterId === undefined) return [];
  const { ids, names, unreadableNodes } = namesOf(facts);
  const nodeOf = new Map(facts.necs.map((nec) => [nec.status.instanceID ?? '', nec.key]));
  return enis
    .filter((eni) => !eni.isPrimary && isOwnEni(eni.tags, clusterId))
    .filter((eni) => eni.state === 'AVAILABLE' && facts.takenAtMs - eni.createdAtMs >= graceMs)
    .filter((eni) => !ids.has(eni.eniId) && !names.has(eni.name) && !unreadableNodes.has(eni.tags[ENI_TAG.node] ?? ''))
    .map((eni) => {
      const instanceId = eni.attachment?.instanceId;
      const node = instanceId === undefined ? undefined : nodeOf.get(instanceId);
      const where =
        instanceId === undefined
          ? 'attached to nothing'
          : `on ${instanceId}${node === undefined ? ', which is no node of this cluster' : ` (${node})`}`;
      const made = eni.tags[ENI_TAG.node];
      const whose = made === undefined ? '' : `, made for node ${made}`;
      return finding('eni-orphaned', {
        what: `${eni.eniId} (${eni.name}${whose}) is ${where} with ${eni.ips.length} addresses; no object names it`,
        fix: fixOfOrphan(eni.eniId, instanceId, node),
        subjects: [eniSubject(eni.eniId)],
      });
    });
}

function fixOfOrphan(eniId: string, instanceId: string | undefined, node: string | undefined): readonly string[] {
  if (node !== undefined)
    return [`kubectl describe nec ${node}: ipamd takes it into this object when it next compares`];
  const wait = 'ipamd deletes it after --orphan-grace; kubectl -n kube-system get events shows when or why not';
  return instanceId === undefined
    ? [wait]
    : [`detach ${eniId} from ${instanceId} by hand if nothing there uses it`, wait];
}

/**
 * Returns every reference to an ENI: ids, names with which ENIs are created, and nodes whose NodeENIConfig is
 * malformed, so that its references may be incomplete.
 */
function namesOf(facts: ClusterFacts) {
  const venis = ifKnown(facts.venis) ?? [];
  const ofNecs = facts.necs.flatMap(({ status }) => status.intents ?? []);
  const ofVenis = venis.flatMap(({ intents }) => intents);
  return {
    ids: new Set([
      ...facts.necs.flatMap(({ status }) => (status.eniInfos ?? []).map(({ eniID }) => eniID)),
      ...venis.map(({ eniId }) => eniId),
      ...ofNecs.flatMap(({ eniID, targetENIID }) => [eniID ?? '', targetENIID ?? '']),
      ...ofVenis.map(({ eniId }) => eniId),
    ]),
    names: new Set([
      ...ofNecs.flatMap(({ resourceName }) => resourceName ?? []),
      ...ofVenis.flatMap(({ resourceName }) => (resourceName === '' ? [] : [resourceName])),
      ...venis.map(({ key }) => key),
    ]),
    unreadableNodes: new Set(facts.necs.filter(({ faults }) => faults.length > 0).map(({ key }) => key)),
  };
}

function necFindings(
  nec: ClusterNec,
  byId: ReadonlyMap<string, Eni>,
  index: ReadonlyMap<string, readonly NecAddress[]>,
): readonly Finding[] {
  const busy = new Set((nec.status.intents ?? []).flatMap(({ eniID }) => eniID ?? []));
  return (nec.status.eniInfos ?? [])
    .filter(({ state, eniID }) => state === 'Attached' && !busy.has(eniID))
    .flatMap((info) => eniFindings(nec.key, info, byId.get(info.eniID), index));
}

function eniFindings(
  node: string,
  info: NodeEniInfo,
  eni: Eni | undefined,
  index: ReadonlyMap<string, readonly NecAddress[]>,
): readonly Finding[] {
  const { eniID } = info;
  if (eni === undefined) {
    const what = `NodeENIConfig ${node} has ${eniID} with ${info.addresses?.length ?? 0} addresses, the cloud does not`;
    const fix = [`kubectl describe nec ${node}`, `kubectl get pods -A --field-selector spec.nodeName=${node}`];
    return [finding('eni-missing', { what, fix, subjects: [eniSubject(eniID)] })];
  }
  const firm = (info.addresses ?? []).filter(({ state }) => state === 'Assigned');
  const cloudIps = [...eni.ips, ...(eni.ipv6s ?? [])];
  const there = new Set(cloudIps.map(({ ip }) => canonicalAddress(ip)));
  const fix = [`kubectl describe nec ${node} says when the cloud was last asked (describedAt)`];
  return [
    ...firm
      .map(({ ip }) => canonicalAddress(ip))
      .filter((ip) => !there.has(ip))
      .map((ip) => {
        const what = `NodeENIConfig ${node} has ${ip} on ${eniID}, the cloud does not`;
        return finding('address-missing', { what, fix, subjects: [`address:${ip}`, eniSubject(eniID)] });
      }),
    ...cloudIps
      .filter(({ isPrimary, state }) => !isPrimary && state === 'AVAILABLE')
      .map(({ ip }) => canonicalAddress(ip))
      .filter((ip) => index.get(ip)?.some((entry) => entry.eniId === eniID) !== true)
      .map((ip) => {
        const what = `the cloud has ${ip} on ${eniID} of ${node}, its NodeENIConfig does not`;
        return finding('address-unlisted', { what, fix, subjects: [`address:${ip}`, eniSubject(eniID)] });
      }),
  ];
}

function duplicatesInCloud(enis: readonly Eni[]): readonly Finding[] {
  const owners = new Map<string, Eni[]>();
  for (const eni of enis) {
    for (const { ip, state } of [...eni.ips, ...(eni.ipv6s ?? [])]) {
      if (state !== 'AVAILABLE') continue;
      const key = `${eni.vpcId} ${ip}`;
      const there = owners.get(key);
      if (there === undefined) owners.set(key, [eni]);
      else there.push(eni);
    }
  }
  return [...owners].flatMap(([key, holders]) => {
    if (holders.length < 2) return [];
    const ip = key.slice(key.indexOf(' ') + 1);
    const what = `the cloud has ${ip} on ${holders.map(({ eniId }) => eniId).join(' and ')}`;
    const fix = ['ask the support of the cloud: an address of a VPC belongs to one ENI'];
    return [finding('address-on-two-enis', { what, fix, subjects: [`cloud:${ip}`] })];
  });
}
