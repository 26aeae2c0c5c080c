import { recordOf, recordsOf, textOf, textsOf } from '../../../runtime/json.ts';
import type { KubeObject } from '../../../sim/kube-api/object.ts';
import { type AuditedWorld, isOfWrongWriter, type OpenAuditor } from './auditor.ts';

/** A block that was freed is for its former Node alone for this long: a write of before may still be under way. */
const SETTLE_MS = 60_000;
/** Calls that make routes. */
const ROUTING = ['CreateGlobalRoutes', 'CreateRoutes', 'CreateClusterRoute'];

/**
 * A19: two Nodes have two blocks, none of which is of a subnet, or has a route to another node; a block is recorded before
 * it is given, and goes to no other machine, nor its machine to another block, in the minute after it was freed. Q2: at rest
 * each podCIDR has one route, to its Node, which says so, and no other route is there.
 */
export const openBlocks: OpenAuditor = (world) => {
  const nodes = () => world.objects('nodes').map(nodeOf);
  /** The routes of each table; of the VPC, where there is none. */
  const places = () => {
    const { globalRoutes, routeTables, clusterRouteTables } = world.host.model.state;
    const tables = [routeTables, clusterRouteTables].flatMap((book) => [...book.tables.values()]);
    const all = tables.length > 0 ? tables.map(({ routes }) => routes) : [[...globalRoutes.values()]];
    return all.map((routes) => routes.filter(({ description }) => !/of others/.test(description)));
  };
  const lastOf = new Map<string, { readonly cidr: string; readonly freedMs: number }>();
  const isInMinute = (cidr: string, machine: string): boolean => {
    const last = lastOf.get(machine);
    return last?.cidr === cidr && world.time.nowMs - last.freedMs < SETTLE_MS;
  };
  return {
    name: 'Q2',
    change: (plural, { object, previous, type }) => {
      if (plural !== 'nodes') return;
      const { name, cidr, machine, ip } = nodeOf(object);
      if (type === 'DELETED' && cidr !== '') lastOf.set(machine, { cidr, freedMs: world.time.nowMs });
      if (type === 'DELETED' || !world.writer.startsWith('ipamd-')) return;
      if (cidr === '' || (previous !== undefined && nodeOf(previous).cidr === cidr)) return;
      const others = nodes().filter((one) => one.name !== name);
      const owner = others.find((one) => one.cidr === cidr);
      if (owner !== undefined) world.violate('A19', `${cidr} is given to ${name}, and ${owner.name} has it`);
      for (const { gatewayIp } of places()
        .flat()
        .filter((one) => one.cidr === cidr))
        if (gatewayIp !== ip) world.violate('A19', `${cidr} is given to ${name}, and a route leads to ${gatewayIp}`);
      if (world.host.model.state.spec.subnets.some((one) => one.cidr === cidr))
        world.violate('A19', `${cidr} is given to ${name}, and is that of a subnet`);
      const recorded = recordedOwner(world, cidr);
      if (recorded !== name)
        world.violate('A19', `${cidr} is given to ${name}, and is ${textOf(recorded) || "nobody's"} by the record`);
      for (const [other] of lastOf)
        if (other !== machine && isInMinute(cidr, other))
          world.violate('A19', `${cidr} is given to ${name}, and was that of ${other} a moment ago`);
      const last = lastOf.get(machine)?.cidr ?? cidr;
      if (last !== cidr && isInMinute(last, machine) && !others.some((one) => one.cidr === last))
        world.violate('A19', `${name} is given ${cidr}, and had ${last} a moment ago`);
    },
    rest: function* () {
      const counts = world.host.counts();
      if (ROUTING.every((action) => counts[action] === undefined)) return;
      // A Node that somebody made for nothing may have no address to lead to.
      const ours = nodes().filter(({ name, cidr }) => cidr !== '' && !isOfWrongWriter(name));
      const routeOf = ({ cidr, ip }: ReturnType<typeof nodeOf>) => `${cidr} by ${ip}`;
      const [wanted, known] = [ours.map(routeOf), nodes().map(routeOf)];
      for (const routes of places()) {
        const found = routes.map(({ cidr, gatewayIp }) => `${cidr} by ${gatewayIp}`);
        for (const one of wanted)
          if (found.filter((is) => is === one).length !== 1) yield `there is not one route ${one}`;
        for (const one of found) if (!known.includes(one)) yield `the route ${one} is nobody's`;
      }
      for (const { name, network } of ours)
        if (network !== 'False') yield `${name} has its route, and says that it has none`;
    },
  };
};

function nodeOf({ metadata, spec, status }: KubeObject) {
  const { podCIDR, providerID } = recordOf(spec);
  const { addresses, conditions } = recordOf(status);
  const network = recordsOf(conditions).find(({ type }) => type === 'NetworkUnavailable');
  return {
    name: metadata.name,
    cidr: textOf(podCIDR),
    machine: `${metadata.name} ${textOf(providerID)}`,
    ip: textOf(recordsOf(addresses)[0]?.['address']),
    network: textOf(network?.['status']),
  };
}

/** The Node whose a block is by the record. */
/** The node to which the record gives a block, or for which it holds one: a node that comes back gets that without another write. */
function recordedOwner(world: AuditedWorld, cidr: string): unknown {
  const map = world.objects('configmaps').find(({ metadata }) => metadata.name === 'tke-eni-pod-cidrs');
  const { owners, held, settings } = recordOf(map?.['data']);
  const block = numberOf(recordOf(parsed(settings)), cidr);
  const all = parsed(owners);
  const owner = (Array.isArray(all) ? all : []).find((one) => Array.isArray(one) && one[0] === block)?.[1];
  return owner ?? recordsOf(parsed(held)).find((one) => one['block'] === block)?.['node'];
}

/** The number of a block: the ranges of the cluster count on, one after the other. */
function numberOf({ clusterCIDRs, maskSize }: Readonly<Record<string, unknown>>, cidr: string): number | undefined {
  const size = 2 ** (32 - Number(maskSize));
  const [at = 0] = rangeOf(cidr);
  let before = 0;
  for (const [first, count] of textsOf(clusterCIDRs).map(rangeOf)) {
    if (at >= first && at < first + count) return before + (at - first) / size;
    before += count / size;
  }
  return undefined;
}

/** The first address of a range as a number, and how many it has. */
function rangeOf(cidr: string): readonly [first: number, count: number] {
  const [ip = '', bits] = cidr.split('/');
  return [ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0), 2 ** (32 - Number(bits))];
}

function parsed(text: unknown): unknown {
  return JSON.parse(textOf(text) || 'null');
}
