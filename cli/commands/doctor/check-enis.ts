import { familyOfMessage } from '../../../dataplane/address-family.ts';
import { hostPrefix } from '../../../dataplane/ip-prefix.ts';
import { RTPROT_TKE_ENI, TABLE_MAIN } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import { eniId, linkId, routeId } from '../../../inspection/catalogue/element-id.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { buildOutline, defaultRoutes, type EniOutline, type Outline } from '../../../inspection/model/build-outline.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { ownAddress, ownPrefix } from '../../../netlink/address-message.ts';
import { renderRoute } from '../../../netlink/render-route.ts';
import type { RouteMessage } from '../../../netlink/route-message.ts';
import { IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/rtnetlink.ts';
import { nodeNameOf } from './agent-pod-command.ts';
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
  evaluate: ({ node }) => {
    const outline = buildOutline(node);
    if (outline.enis.length === 0)
      return skipped('no ENI is known on this node, neither to the journal nor to the kernel');
    return done(
      outline.enis.flatMap((eni) => [
        ...attached(eni, outline, nodeNameOf(node)),
        ...state(eni),
        ...addresses(eni, node),
        ...mainRoutes(eni, node, outline),
        ...renamed(eni, node),
      ]),
      outline.enis.map(
        ({ title, table, link }) => `${title}: table ${table}, ${link === undefined ? 'not here' : `mtu ${link.mtu}`}`,
      ),
    );
  },
};

function subjectsOf(eni: EniOutline): readonly string[] {
  return [
    ...(eni.eniId === undefined ? [] : [eniId(eni.eniId)]),
    ...(eni.ifindex === undefined ? [] : [linkId(eni.ifindex)]),
  ];
}

function attached(eni: EniOutline, { pods }: Outline, nodeName: string): readonly Finding[] {
  if (eni.link !== undefined) return [];
  const users = pods.filter(({ lease }) => lease !== undefined && lease.eniId === eni.eniId);
  // The ENI is still being attached, or is detached and no Pod uses it.
  if (users.length === 0 && eni.supplied?.attached !== true) return [];
  const what = `no interface has the MAC ${eni.mac ?? '(unknown)'} of ${eni.title}; ${users.length} Pods use it`;
  const fix = [`ip -br link | grep -i ${eni.mac ?? ''}`, `kubectl describe nec ${nodeName}`];
  return [finding('eni-detached', { what, fix, subjects: subjectsOf(eni) })];
}

function state(eni: EniOutline): readonly Finding[] {
  const { link, title } = eni;
  if (link === undefined) return [];
  if ((link.flags & IFF_UP) === 0) {
    const fix = ['tke-eni repair', `ip link set ${link.ifname} up`];
    return [finding('eni-down', { what: `${title} is down`, fix, subjects: subjectsOf(eni) })];
  }
  if (link.carrier !== 0) return [];
  const fix = [`ethtool ${link.ifname}`, 'detach and attach the ENI in the console if it stays so'];
  return [finding('eni-no-carrier', { what: `${title} has no carrier`, fix, subjects: subjectsOf(eni) })];
}

function addresses(eni: EniOutline, { host }: NodeFacts): readonly Finding[] {
  const { link, title } = eni;
  if (link === undefined) return [];
  const present = host.addresses.filter(
    ({ ifindex, scope }) => ifindex === link.ifindex && scope === RT_SCOPE_UNIVERSE,
  );
  const texts = present.map(ownAddress);
  const missing = eni.addresses.filter((ip) => !texts.includes(ip));
  const foreign = present.filter((message) => !eni.addresses.includes(ownAddress(message)));
  return [
    ...missing.map((ip) =>
      finding('eni-without-address', {
        what: `${title} does not have its primary address ${ip}`,
        fix: ['tke-eni repair', `ip address add ${hostPrefix(ip)} dev ${link.ifname}`],
        subjects: subjectsOf(eni),
      }),
    ),
    // Without a record of the ENI its own address is not known.
    ...(eni.addresses.length === 0 ? [] : foreign).map((message) =>
      finding('eni-foreign-address', {
        what: `${title} has the address ${ownPrefix(message)}, which is not ours`,
        fix: [`ip address del ${ownPrefix(message)} dev ${link.ifname}`],
        subjects: subjectsOf(eni),
      }),
    ),
  ];
}

function mainRoutes(eni: EniOutline, { host }: NodeFacts, outline: Outline): readonly Finding[] {
  return host.routes
    .filter((route) => route.table === TABLE_MAIN && route.oif !== undefined && route.oif === eni.ifindex)
    .filter((route) => route.protocol !== RTPROT_TKE_ENI && !isLinkLocal(route))
    .map((route) => {
      const line = renderRoute('delete', route, outline.nameOf);
      const dst = route.dst ?? 'default';
      const what = `the main table has ${dst} by ${eni.title}`;
      return finding('eni-connected-route', {
        what,
        fix: [line],
        subjects: [...subjectsOf(eni), routeId(TABLE_MAIN, dst)],
      });
    });
}

function isLinkLocal({ dst }: RouteMessage): boolean {
  return dst !== undefined && /^(fe80:|ff)/i.test(dst);
}

function renamed(eni: EniOutline, { agent }: NodeFacts): readonly Finding[] {
  const facts = ifKnown(agent);
  const recorded = facts && ifKnown(facts.node)?.enis.find(({ eniId: id }) => id === eni.eniId);
  if (recorded === undefined || eni.link === undefined || recorded.ifindex <= 0) return [];
  // A changed interface index is handled by MAC wherever it matters. Settings by interface name are not.
  const { ifname } = eni.link;
  if (recorded.ifname === ifname) return [];
  const what = `the agent recorded ${recorded.ifname} for ${eni.title}, whose interface is called ${ifname} now`;
  return [finding('eni-renamed', { what, fix: ['tke-eni repair'], subjects: subjectsOf(eni) })];
}

/** Checks by which interfaces the node's own packets leave. */
export const DEFAULT_ROUTES_CHECK: Check = {
  id: 'default-routes',
  scope: 'one default route in the main table, by the primary interface',
  finds: ['default-routes'],
  evaluate: ({ node }) => {
    const { enis, nameOf, primary } = buildOutline(node);
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
