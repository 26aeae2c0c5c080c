import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { OpenAuditor } from './auditor.ts';

/** Q2 for EIPs: those with our tag are those of claims, both ways, and a claim of a Pod has one. */
export const openEipsAreClaims: OpenAuditor = (world) => ({
  name: 'Q2',
  rest: function* () {
    const claimed = new Map(
      world.objects('eipclaims').map(({ metadata, status }) => [textOf(recordOf(status)['eipID']), metadata.name]),
    );
    for (const { eipId, tags, binding } of world.host.model.state.eips.values()) {
      if (tags['tke-created-eip'] === undefined) continue;
      const name = claimed.get(eipId);
      if (name === undefined) yield `${eipId} is of no claim`;
      claimed.delete(eipId);
      const pod = world.objects('pods').find(({ metadata }) => metadata.name === name);
      const ip = recordOf(pod?.['status'])['podIP'];
      if (pod !== undefined && binding?.ip !== ip) yield `${eipId} of ${name} is bound to ${binding?.ip}, not to ${ip}`;
      if (pod === undefined && binding !== undefined) yield `${eipId} is bound, and ${name} is gone`;
    }
    for (const [eipId, name] of claimed) if (eipId !== '') yield `${name} has ${eipId}, which is not in the cloud`;
  },
});

/**
 * Q2 for routes and A19: at rest each podCIDR has one route, to its node, and no other route is there. At any moment two Nodes
 * have two blocks, and none has one to which a route leads that is another node's.
 */
export const openRoutesAreNodes: OpenAuditor = (world) => {
  const nodes = () =>
    world.objects('nodes').map((node) => ({
      name: node.metadata.name,
      cidr: textOf(recordOf(node['spec'])['podCIDR']),
      ip: textOf(recordsOf(recordOf(node['status'])['addresses'])[0]?.['address']),
    }));
  const routes = () =>
    [...world.host.model.state.globalRoutes.values()].filter(({ description }) => description !== 'of others');
  return {
    name: 'Q2',
    change: (plural, { object, previous }) => {
      if (plural !== 'nodes') return;
      const cidr = textOf(recordOf(object['spec'])['podCIDR']);
      if (cidr === '' || textOf(recordOf(previous?.['spec'])['podCIDR']) === cidr) return;
      const { name } = object.metadata;
      const other = nodes().find((one) => one.cidr === cidr && one.name !== name);
      if (other !== undefined) world.violate('A19', `${cidr} is given to ${name}, and ${other.name} has it`);
      const ips = textsOf(recordsOf(recordOf(object['status'])['addresses']).map(({ address }) => address));
      const route = routes().find((one) => one.cidr === cidr);
      if (route !== undefined && !ips.includes(route.gatewayIp))
        world.violate('A19', `${cidr} is given to ${name}, and a route leads to ${route.gatewayIp}`);
    },
    rest: function* () {
      if (routes().length === 0 && nodes().every(({ cidr }) => cidr === '')) return;
      const wanted = nodes().flatMap(({ cidr, ip }) => (cidr === '' ? [] : [`${cidr} by ${ip}`]));
      const found = routes().map(({ cidr, gatewayIp }) => `${cidr} by ${gatewayIp}`);
      for (const one of wanted)
        if (found.filter((is) => is === one).length !== 1) yield `there is not one route ${one}`;
      for (const one of found) if (!wanted.includes(one)) yield `the route ${one} is nobody's`;
    },
  };
};
