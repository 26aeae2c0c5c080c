import { familyOfMessage } from '../../../dataplane/address-family.ts';
import { TABLE_MAIN } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { eniId, linkId, routeId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { defaultRoutes, type ModelEni } from '../../../inspection/model/node-model.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ownAddress, ownPrefix } from '../../../netlink/address-message.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/rtnetlink.ts';
import { type Check, done, skipped } from './check.ts';

/** Checks each ENI: present, up, with its address, and not configured by other programs. */
export const ENIS_CHECK: Check = {
  id: 'enis',
  scope: 'ENIs are there, up, have their addresses, and no other program configures them',
  finds: [
    'eni-detached',
    'eni-down',
    'eni-no-carrier',
    'eni-without-address',
    'eni-foreign-address',
    'eni-connected-route',
    'eni-renamed',
  ],
  evaluate: ({ model, node }) => {
    const outline = model;
    if (outline.enis.length === 0)
      return skipped('no ENI is known on this node, neither to the journal nor to the kernel');
    return done(
      outline.enis.flatMap((eni) => [...addresses(eni, node), ...renamed(eni, node)]),
      outline.enis.map(
        ({ name, table, link }) => `${name}: table ${table}, ${link === undefined ? 'not here' : `mtu ${link.mtu}`}`,
      ),
    );
  },
};

function subjectsOf(eni: ModelEni): readonly string[] {
  return [
    ...(eni.eniId === undefined ? [] : [eniId(eni.eniId)]),
    ...(eni.ifindex === undefined ? [] : [linkId(eni.ifindex)]),
  ];
}

function addresses(eni: ModelEni, { host }: NodeFacts): readonly Finding[] {
  const { link, name } = eni;
  // Without a record of the ENI its own address is not known.
  if (link === undefined || eni.addresses.length === 0) return [];
  return host.addresses
    .filter(({ ifindex, scope }) => ifindex === link.ifindex && scope === RT_SCOPE_UNIVERSE)
    .filter((message) => !eni.addresses.includes(ownAddress(message)))
    .map((message) =>
      finding('eni-foreign-address', {
        what: `${name} has the address ${ownPrefix(message)}, which is not ours`,
        fix: [`ip address del ${ownPrefix(message)} dev ${link.ifname}`],
        subjects: subjectsOf(eni),
      }),
    );
}

function renamed(eni: ModelEni, { agent }: NodeFacts): readonly Finding[] {
  const facts = ifKnown(agent);
  const recorded = facts && ifKnown(facts.node)?.enis.find(({ eniId: id }) => id === eni.eniId);
  if (recorded === undefined || eni.link === undefined || recorded.ifindex <= 0) return [];
  // A changed interface index is handled by MAC wherever it matters. Settings by interface name are not.
  const { ifname } = eni.link;
  if (recorded.ifname === ifname) return [];
  const what = `the agent recorded ${recorded.ifname} for ${eni.name}, whose interface is called ${ifname} now`;
  return [finding('eni-renamed', { what, fix: ['tke-eni repair'], subjects: subjectsOf(eni) })];
}

/** Checks by which interfaces the node's own packets leave. */
export const DEFAULT_ROUTES_CHECK: Check = {
  id: 'default-routes',
  scope: 'one default route in the main table, by the primary interface',
  finds: ['default-routes'],
  evaluate: ({ model, node }) => {
    const { enis, nameOf, primary } = model;
    const eniIndexes = new Set(enis.map(({ ifindex }) => ifindex));
    const routes = defaultRoutes(node).filter(({ oif }) => !eniIndexes.has(oif));
    const findings = ([4, 6] as const).flatMap((family): readonly Finding[] => {
      const ofFamily = routes.filter((route) => familyOfMessage(route) === family);
      const best = Math.min(...ofFamily.map(({ priority }) => priority ?? 0));
      const names = [
        ...new Set(ofFamily.filter(({ priority }) => (priority ?? 0) === best).map(({ oif }) => nameOf(oif ?? 0))),
      ];
      if (names.length < 2 && (names.length === 0 || primary === undefined || names.includes(primary.ifname)))
        return [];
      const what =
        names.length < 2
          ? `the IPv${family} default route leaves by ${names.join()}, the agent holds ${primary?.ifname} for the primary interface`
          : `IPv${family} has default routes of one metric by ${names.join(' and ')}`;
      return [
        finding('default-routes', {
          what,
          fix: [`ip -${family} route show default`],
          subjects: [routeId(TABLE_MAIN, 'default')],
        }),
      ];
    });
    return done(findings, primary === undefined ? ['no primary interface'] : [`primary: ${primary.ifname}`]);
  },
};
