import { RTPROT_TKE_ENI } from '../../../dataplane/numbers.ts';
import { type Owner, type OwnerIndex, ownerText } from '../../../inspection/node/build-owner-index.ts';
import { NUD_NOARP, NUD_NONE } from '../../../netlink/uapi/neighbour.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { RT_SCOPE_UNIVERSE } from '../../../netlink/uapi/rtnetlink.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { columnsOf, type Row } from './find-columns.ts';
import type { IpNames, IpObject } from './ip-names.ts';
import { renderAddressJson } from './render-address-json.ts';
import type { Topic } from './render-dump-json.ts';
import { renderLinkJson } from './render-link-json.ts';
import { renderNeighJson } from './render-neigh-json.ts';
import { renderRouteJson } from './render-route-json.ts';
import { renderRuleJson } from './render-rule-json.ts';
import type { NetnsDump } from './select-dump.ts';

/** How a list is laid out. */
type TableView = {
  /** Also shows what the kernel creates by itself. */
  readonly isAll: boolean;
  readonly isColored: boolean;
  /** Columns of the terminal; undefined: nothing is cut. */
  readonly width?: number;
  /** Names of tables, those of tke-eni included. */
  readonly tableNames: ReadonlyMap<number, string>;
};

/** Renders one namespace as tables: one for each owner, and one for all Pods. */
export function renderDumpTable(
  topic: Topic,
  part: NetnsDump,
  names: IpNames,
  owners: OwnerIndex,
  view: TableView,
): string {
  const { isAll, isColored } = view;
  const rows = rowsOf(topic, part, withOurNames(names, view.tableNames), owners);
  const sections =
    part.pod === undefined ? sectionsOf(topic, rows) : [{ title: `Inside Pod ${part.pod}`, rows, rank: 0 }];
  const isShort = !isAll && topic !== 'rules' && topic !== 'links';
  const isHidden = ({ isNoise }: Row): boolean => isShort && isNoise;
  const hidden = rows.filter(isHidden).length;
  const shown = sections
    .map((section) => ({ ...section, rows: section.rows.filter((row) => !isHidden(row)) }))
    .filter((section) => section.rows.length > 0);
  const texts = shown.map(({ title, rows: ofSection }) => {
    const columns = withPod(columnsOf(topic), ofSection).filter((column) =>
      ofSection.some((row) => column.text(row) !== ''),
    );
    const table = renderTable(ofSection, columns, {
      isColored,
      ...(view.width === undefined ? {} : { width: view.width }),
    });
    return `${paint(plainText(title), 'bold', isColored)}\n${table}`;
  });
  const suffix = part.pod === undefined ? '' : ` inside Pod ${plainText(part.pod)}`;
  const rest = hidden === 0 ? [] : [`${hidden} more${suffix} of the kernel's own: --all shows them\n`];
  const nothing = rows.length === 0 ? [`nothing found${suffix}\n`] : [];
  return [...texts, ...rest, ...nothing].join('\n');
}

type Section = { readonly title: string; readonly rows: readonly Row[]; readonly rank: number };

/** Order of the sections: ENIs by their tables, the node, Pods by name, other programs, the kernel. */
const RANKS: Readonly<Record<Owner['kind'], number>> = { eni: 0, node: 1, pod: 2, foreign: 3, kernel: 4 };

function sectionsOf(topic: Topic, rows: readonly Row[]): readonly Section[] {
  const sections = new Map<string, Row[]>();
  for (const row of rows) {
    const title = titleOf(topic, row.owner);
    const section = sections.get(title) ?? [];
    section.push(row);
    sections.set(title, section);
  }
  return [...sections]
    .map(([title, ofSection]): Section => {
      const isPods = title === 'Pods';
      const sorted = isPods
        ? ofSection.toSorted((a, b) => compareTexts(podText(a.owner), podText(b.owner)))
        : ofSection;
      return { title, rows: sorted, rank: rankOf(ofSection) };
    })
    .sort((a, b) => a.rank - b.rank || compareTexts(a.title, b.title));
}

/**
 * Returns the heading of an owner's section. Objects of unknown owners share the heading 'Others': the interface, all
 * that is known of such an owner, is already in the row.
 */
function titleOf(topic: Topic, owner: Owner): string {
  if (owner.kind === 'pod') return 'Pods';
  return owner.kind === 'foreign' && topic !== 'routes' && topic !== 'rules' ? 'Others' : ownerText(owner);
}

function rankOf([row]: readonly Row[]): number {
  return row === undefined ? 0 : RANKS[row.owner.kind];
}

/** As many characters of a container id as `crictl pods` shows. */
const SHOWN_ID_LENGTH = 13;

/** Returns a Pod's name, or the beginning of its container id where the name is not known. */
function podText(owner: Owner): string {
  if (owner.kind !== 'pod') return '';
  return owner.name === '' ? owner.key.slice(0, SHOWN_ID_LENGTH) : `${owner.namespace}/${owner.name}`;
}

function withPod(columns: readonly Column<Row>[], rows: readonly Row[]): readonly Column<Row>[] {
  const pod: Column<Row> = { title: 'POD', text: ({ owner }) => podText(owner) };
  return rows.some(({ owner, isInside }) => owner.kind === 'pod' && !isInside) ? [pod, ...columns] : columns;
}

function withOurNames(names: IpNames, tableNames: ReadonlyMap<number, string>): IpNames {
  return {
    ...names,
    table: (table) => tableNames.get(table) ?? names.table(table),
    protocol: (protocol) => (protocol === RTPROT_TKE_ENI ? 'tke-eni' : names.protocol(protocol)),
  };
}

function rowsOf(topic: Topic, { facts, pod }: NetnsDump, names: IpNames, owners: OwnerIndex): readonly Row[] {
  const isInside = pod !== undefined;
  const row = (owner: Owner, object: IpObject, family: number, isNoise = owner.kind === 'kernel'): Row => ({
    owner,
    object,
    family: family === AF_INET ? '4' : '6',
    isInside,
    isNoise,
  });
  switch (topic) {
    case 'routes':
      return facts.routes.map((route) => {
        const object = renderRouteJson(route, names, { isDetailed: true, isOneTable: false });
        return row(owners.ownerOfRoute(route), object, route.family);
      });
    case 'rules':
      return facts.rules.map((rule) => row(owners.ownerOfRule(rule), renderRuleJson(rule, names, true), rule.family));
    case 'neigh':
      return facts.neighs.map((neigh) => {
        const owner = isInside ? INSIDE : owners.ownerOfNeigh(neigh);
        return row(owner, renderNeighJson(neigh, names), neigh.family, NOISY_STATES.has(neigh.state));
      });
    case 'links': {
      const flags = new Map(facts.links.map((link) => [link.ifindex, link.flags]));
      const view = { isDetailed: true, flagsOf: (ifindex: number) => flags.get(ifindex) ?? 1 };
      return facts.links.map((link) =>
        row(isInside ? INSIDE : owners.ownerOfLink(link), renderLinkJson(link, names, view), AF_INET, false),
      );
    }
    case 'addrs':
      return facts.addresses.map((address) => {
        const object = { dev: names.link(address.ifindex), ...renderAddressJson(address, names) };
        const owner = isInside ? INSIDE : owners.ownerOfAddress(address);
        const isNoise = address.scope !== RT_SCOPE_UNIVERSE && (isInside || owner.kind === 'kernel');
        return row(owner, object, address.family, isNoise);
      });
  }
}

/** Owner of everything inside a Pod. The index of owners is for the node's namespace only. */
const INSIDE: Owner = { kind: 'node' };
/** The kernel creates these neighbours without address resolution. */
const NOISY_STATES: ReadonlySet<number> = new Set([NUD_NOARP, NUD_NONE]);
