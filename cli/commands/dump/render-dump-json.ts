import type { OwnerIndex } from '../../../inspection/node/build-owner-index.ts';
import { ownerText } from '../../../inspection/node/build-owner-index.ts';
import type { NetnsFacts } from '../../../inspection/node/node-facts.ts';
import type { IpNames, IpObject } from './ip-names.ts';
import { renderAddressJson } from './render-address-json.ts';
import { renderAddressLinkJson, renderLinkJson } from './render-link-json.ts';
import { renderNeighJson } from './render-neigh-json.ts';
import { familyName, renderRouteJson } from './render-route-json.ts';
import { renderRuleJson } from './render-rule-json.ts';
import type { NetnsDump } from './select-dump.ts';

/** The kinds of objects that can be listed. */
export type Topic = 'routes' | 'rules' | 'links' | 'addrs' | 'neigh';

/** How objects are rendered. */
export type JsonView = {
  readonly isDetailed: boolean;
  readonly isOneTable: boolean;
  /** Adds "owner" and "family" to each object; undefined leaves objects as `ip` prints them. */
  readonly owners?: OwnerIndex;
};

/** Renders one namespace as objects of `ip -j`; those inside a Pod have the member "pod". */
export function renderDumpJson(topic: Topic, part: NetnsDump, names: IpNames, view: JsonView): readonly IpObject[] {
  const objects = RENDERERS[topic](part.facts, names, view);
  return part.pod === undefined ? objects : objects.map((object) => ({ ...object, pod: part.pod }));
}

type Renderer = (facts: NetnsFacts, names: IpNames, view: JsonView) => readonly IpObject[];

const RENDERERS: Readonly<Record<Topic, Renderer>> = {
  routes: ({ routes }, names, view) =>
    routes.map((route) => ({
      ...renderRouteJson(route, names, view),
      ...marksOf(view, route.family, () => view.owners?.ownerOfRoute(route)),
    })),
  rules: ({ rules }, names, view) =>
    rules.map((rule) => ({
      ...renderRuleJson(rule, names, view.isDetailed),
      ...marksOf(view, rule.family, () => view.owners?.ownerOfRule(rule)),
    })),
  neigh: ({ neighs }, names, view) =>
    neighs.map((neigh) => ({
      ...renderNeighJson(neigh, names),
      ...marksOf(view, neigh.family, () => view.owners?.ownerOfNeigh(neigh)),
    })),
  links: ({ links }, names, view) => {
    const linkView = { isDetailed: view.isDetailed, flagsOf: flagsIn(links) };
    return links.map((link) => ({
      ...renderLinkJson(link, names, linkView),
      ...marksOf(view, undefined, () => view.owners?.ownerOfLink(link)),
    }));
  },
  addrs: ({ links, addresses }, names, view) => {
    const linkView = { isDetailed: view.isDetailed, flagsOf: flagsIn(links) };
    return links.map((link) => ({
      ...renderAddressLinkJson(link, names, linkView),
      ...marksOf(view, undefined, () => view.owners?.ownerOfLink(link)),
      addr_info: addresses
        .filter(({ ifindex }) => ifindex === link.ifindex)
        .map((address) => renderAddressJson(address, names)),
    }));
  },
};

function flagsIn(links: NetnsFacts['links']): (ifindex: number) => number {
  const flags = new Map(links.map((link) => [link.ifindex, link.flags]));
  // A lower link that is not in the list counts as up, so that M-DOWN is not reported for it.
  return (ifindex) => flags.get(ifindex) ?? 1;
}

/** Returns the members that tell whose an object is; none where the view has no owners. */
export function marksOf(
  view: JsonView,
  family: number | undefined,
  ownerOf: () => ReturnType<OwnerIndex['ownerOfIfindex']> | undefined,
): IpObject {
  const owner = view.owners === undefined ? undefined : ownerOf();
  if (owner === undefined) return {};
  return {
    ...(family === undefined ? {} : { family: familyName(family) }),
    owner: { ...owner, text: ownerText(owner) },
  };
}
