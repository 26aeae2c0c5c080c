import { recordOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';
import { OWNER_TAG, ownBalancers, podsBehind, targetsOf } from './balancer-owners.ts';

/**
 * A18: a target is published for as long as it is one, and no Pod has its address but those of its owner. A16: an owner has one load
 * balancer. One that its source ranges have closed is not open for a moment.
 */
export const openBalancerTargets: OpenAuditor = (world) => {
  const closed = new Set<string>();
  const look = (): void => {
    const published = new Set(
      world.objects('nodeeniconfigs').flatMap((one) => textsOf(recordOf(one['loadBalancers'])['registeredIPs'])),
    );
    const sandboxes = world.machines.flatMap(({ kubelet }) => [...kubelet.sandboxes.values()]);
    const seen = new Map<string, string>();
    const hashes = world.host.model.state.certificates.all().flatMap(({ tags }) => tags[OWNER_TAG] ?? []);
    if (new Set(hashes).size < hashes.length) world.violate('A16', 'two uploads are of one certificate');
    for (const { balancer, owner } of ownBalancers(world)) {
      const { loadBalancerId: id, listeners, securityGroupIds } = balancer;
      const uid = owner?.metadata.uid ?? '';
      const other = seen.get(uid);
      if (uid !== '' && other !== undefined) world.violate('A16', `${id} and ${other} are of one owner`);
      seen.set(uid, id);
      const uids = owner === undefined ? [] : podsBehind(world, owner).map(({ metadata }) => metadata.uid);
      for (const { ip, type } of [...listeners.values()].flatMap(targetsOf)) {
        if (type !== 'ENI') continue;
        if (!published.has(ip)) world.violate('A18', `${ip} is a target of ${id}, and not published`);
        const stranger = sandboxes.find(({ ips, uid: pod }) => ips.includes(ip) && !uids.includes(pod));
        if (stranger !== undefined) world.violate('A18', `${ip} is a target of ${id}, and ${stranger.pod} has it`);
      }
      const isLimited = textsOf(recordOf(owner?.['spec'])['loadBalancerSourceRanges']).length > 0;
      const isOpen = listeners.size > 0 && securityGroupIds.length === 0;
      if (!isLimited) closed.delete(id);
      else if (!isOpen) closed.add(id);
      else if (closed.has(id)) world.violate('A18', `${id} is open to everyone, and was closed`);
    }
  };
  return { name: 'A18', step: look, arrives: look };
};
