import type { ApiBudget, BridgePods, SummaryReply } from '../../../agent/api/ops-messages.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { ageText, latencyText } from '../../agent/duration-text.ts';
import { cutText } from '../../output/cell-text.ts';
import { type Color, paint } from '../../output/color.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { AddressUse, AddressView } from '../pool/pool-view.ts';
import { blockLine, poolHead, type RenderOptions, sourceNotice } from '../pool/render-pool.ts';
import { computeLatency, statsOf } from '../top/compute-latency.ts';
import type { NodeStatus } from './build-status.ts';
import { decideReadiness, type Readiness } from './decide-readiness.ts';

/** Renders a status on one page; `isFull` adds every address. */
export function renderStatus(status: NodeStatus, options: RenderOptions & { readonly isFull: boolean }): string {
  const lines = [...agentLines(status), ...poolLines(status), ...workLines(status.summary)];
  const page = lines.map((line) => renderLine(line, options)).join('');
  if (!options.isFull) return page;
  const isCiliumNode = status.summary?.supplySource === 'cilium-node';
  const head = isCiliumNode ? `${renderIpam(status.pool.addresses)}\n` : '';
  return `${head}${page}\n${renderAddresses(status.pool.addresses, options)}`;
}

type Line = { readonly label: string; readonly text: string; readonly color?: Color | undefined };

/** Width of the column of labels; the longest is 'fast path'. */
const LABEL_WIDTH = 10;

function renderLine({ label, text, color }: Line, { width, isColored }: RenderOptions): string {
  const maxWidth = width - LABEL_WIDTH;
  return `${paint(label.padEnd(LABEL_WIDTH), 'bold', isColored)}${paint(cutText(plainText(text), maxWidth), color, isColored)}\n`;
}

function agentLines(status: NodeStatus): readonly Line[] {
  const { summary, pool } = status;
  const readiness = decideReadiness(status);
  if (summary === undefined || readiness === undefined) {
    return [
      { label: 'agent', text: stateOf(pool), color: 'red' },
      { label: '', text: sourceNotice(pool) ?? pool.whyNoAgent ?? '' },
    ];
  }
  const { agentVersion, nodeName, uptimeMs, ruleMode } = summary;
  const where = nodeName === '' ? '' : ` on ${nodeName}`;
  return [
    { label: 'agent', text: `${agentVersion}${where}, up ${ageText(uptimeMs)}, rule mode ${ruleMode}` },
    { label: 'ready', text: readiness.text, color: READY_COLORS[readiness.kind] },
    ...readiness.details.map((text) => ({ label: '', text })),
  ];
}

function stateOf({ isAgentOld, isAgentSilent }: NodeStatus['pool']): string {
  return isAgentOld === true ? 'TOO OLD' : isAgentSilent === true ? 'NO ANSWER' : 'NOT RUNNING';
}

const READY_COLORS: Readonly<Record<Readiness['kind'], Color>> = {
  yes: 'green',
  limited: 'yellow',
  waits: 'yellow',
  full: 'yellow',
  no: 'red',
};

function poolLines({ summary, pool, counts }: NodeStatus): readonly Line[] {
  const [head, ...rest] = poolHead({ ...pool, source: 'agent' });
  const source = summary === undefined || summary.supplySource === '' ? [] : [`supply from ${supplyFrom(summary)}`];
  return [
    { label: 'pool', text: head?.text ?? '', color: counts.free === 0 && counts.total > 0 ? 'yellow' : undefined },
    ...rest.map(({ text, color }) => ({ label: '', text, color })),
    ...source.map((text) => ({ label: '', text })),
    // The agent tells more of them, below.
    ...(summary === undefined ? (pool.blocks ?? []).map((block) => ({ label: '', ...blockLine(block) })) : []),
  ];
}

function supplyFrom({ supplySource }: SummaryReply): string {
  return SUPPLY_SOURCES[supplySource] ?? supplySource;
}

const SUPPLY_SOURCES: Readonly<Record<string, string>> = {
  cluster: 'the API server',
  file: 'a file',
  'cilium-node': 'the CiliumNode',
};

function workLines(summary: SummaryReply | undefined): readonly Line[] {
  if (summary === undefined) return [];
  const { leasesActive, leasesPending, leasesReleasing, journalOrigin, held, conflicts } = summary;
  return [
    {
      label: 'journal',
      text: `${journalOrigin}; leases: ${leasesActive} active, ${leasesPending} pending, ${leasesReleasing} releasing`,
      color: journalOrigin.startsWith('replaced') ? 'yellow' : undefined,
    },
    ...(summary.bridge === undefined ? [] : bridgeLines(summary.bridge)),
    ...fastPathLines(summary.fastPath),
    ...['add', 'del'].map((verb) => ({ label: verb === 'add' ? 'calls' : '', text: callsText(summary, verb) })),
    ...repairLines(summary),
    ...(summary.api === undefined ? [] : apiLines(summary.api)),
    ...summary.apiFailures.map(({ summary: text, isNeededByPods }): Line => {
      return { label: 'API', text, color: isNeededByPods ? 'red' : 'yellow' };
    }),
    ...held.map((text): Line => ({ label: 'fight', text, color: 'red' })),
    ...conflicts.map((text): Line => ({ label: 'conflict', text, color: 'yellow' })),
  ];
}

function bridgeLines(bridge: BridgePods): readonly Line[] {
  const { defaultNetwork, podCidrs, formerCidrs, addresses, inUse, problem, masquerade, masqueradeWhy, wiring } =
    bridge;
  const wired = wiring === '' ? '' : `wiring ${wiring}; `;
  const former = formerCidrs.length === 0 ? '' : `; Pods live in former ${formerCidrs.join(', ')}`;
  const use = `${inUse} of ${addresses} addresses in use`;
  return [
    { label: 'bridge', text: `default ${defaultNetwork}; podCIDR ${podCidrs.join(', ') || 'none'}, ${use}${former}` },
    ...(problem === '' ? [] : [{ label: '', text: problem, color: 'yellow' } as const]),
    { label: '', text: `${wired}masquerade ${masquerade ? 'on' : 'off'}: ${masqueradeWhy}` },
  ];
}

/** Nothing where it is off as wanted: most nodes. */
function fastPathLines(fastPath: SummaryReply['fastPath']): readonly Line[] {
  if (fastPath === undefined || (fastPath.mode === 'off' && fastPath.why === '')) return [];
  const { mode, why, ageMs, flows, epoch } = fastPath;
  if (mode === 'off') return [{ label: 'fast path', text: `off: ${why}`, color: 'yellow' }];
  const ended = epoch === 0 ? '' : `; all of them ended ${epoch} times`;
  // The kernel counts the flows of no flowtable.
  const followed = mode === 'flowtable' ? '' : `, ${flows} flows are followed`;
  return [{ label: 'fast path', text: `${mode} since ${ageText(ageMs)}${followed}${ended}` }];
}

function callsText({ calls }: SummaryReply, verb: string): string {
  const { total, failed, buckets } = statsOf(calls, verb);
  const latency = computeLatency(buckets);
  const times =
    latency === undefined
      ? ''
      : `, half in ${latencyText(latency.p50)}, 90% in ${latencyText(latency.p90)}, 99% in ${latencyText(latency.p99)}`;
  return `${verb.toUpperCase()} ${total}${failed === 0 ? '' : `, ${failed} failed`}${times}`;
}

function repairLines(summary: SummaryReply): readonly Line[] {
  const { passes, lastPassAgeMs, lastPassCause, lastPassError, drift, repaired, fights, overruns, forcedReuse } =
    summary;
  const lastPass = passes === 0 ? 'no pass yet' : `${passes} passes, the last ${ageText(lastPassAgeMs)} ago`;
  const cause = lastPassCause === '' ? '' : ` (${lastPassCause})`;
  const found = `${drift} differences found, ${repaired} operations done, ${fights} fights`;
  const lines: Line[] = [
    { label: 'repair', text: `${lastPass}${cause}` },
    { label: '', text: found },
  ];
  if (lastPassError !== '') lines.push({ label: '', text: `the last pass failed: ${lastPassError}`, color: 'red' });
  if (overruns > 0) lines.push({ label: '', text: `kernel notifications lost ${overruns} times` });
  if (forcedReuse > 0) {
    lines.push({ label: '', text: `${forcedReuse} addresses were given before their cooldown ended`, color: 'yellow' });
  }
  return lines;
}

function apiLines({
  qps,
  burst,
  calls,
  failed,
  throttled,
  throttledMs,
  tokensLeft,
  silenceMs,
  heard,
}: ApiBudget): readonly Line[] {
  const used = `${calls} calls${failed === 0 ? '' : `, ${failed} failed`}`;
  const waits = throttled === 0 ? '' : `, ${throttled} waited ${ageText(throttledMs)} in all`;
  const silence = heard ? `contact ${ageText(silenceMs)} ago` : 'no contact yet';
  const color = heard && silenceMs < API_SILENCE_MS ? undefined : 'yellow';
  return [
    { label: 'API', text: `${silence}; ${used}${waits}`, color },
    { label: '', text: `allowed: ${qps} calls a second, ${burst} at once; ${tokensLeft} left now` },
  ];
}

/** A watch is renewed at least every few minutes; after a longer silence the API server is considered unreachable. */
const API_SILENCE_MS = 10 * 60_000;

/** Renders addresses, one line each. */
function renderAddresses(addresses: readonly AddressView[], options: RenderOptions): string {
  return renderTable(addresses, COLUMNS, options);
}

const COLORS: Readonly<Record<AddressUse, Color | undefined>> = {
  'in-use': 'green',
  free: undefined,
  kept: 'cyan',
  cooling: 'cyan',
  registered: 'yellow',
  offered: 'dim',
  releasing: 'dim',
  unready: 'yellow',
};

const COLUMNS: readonly Column<AddressView>[] = [
  { title: 'IP', text: ({ ip }) => ip },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 4 },
  {
    title: 'STATE',
    text: ({ use, isUnlisted }) => `${use}${isUnlisted === true ? ' (unlisted)' : ''}`,
    color: ({ use }) => COLORS[use],
  },
  { title: 'OWNER', text: ownerText },
  {
    title: 'COOLS FOR',
    text: ({ coolRemainingMs }) => (coolRemainingMs === undefined ? '' : ageText(coolRemainingMs)),
    align: 'right',
    priority: 3,
  },
  { title: 'SANDBOX', text: ({ owner }) => owner?.containerId.slice(0, ID_DIGITS) ?? '', priority: 2 },
  { title: 'ASSIGNMENT', text: ({ assignmentId }) => assignmentId, priority: 1 },
];

/** As many digits of a container id as `crictl pods` shows. */
const ID_DIGITS = 13;

function ownerText({ owner, keptFor }: AddressView): string {
  if (owner === undefined) return keptFor === undefined ? '' : `kept for ${keptFor.pods}`;
  const name = owner.podName === '' ? owner.containerId.slice(0, ID_DIGITS) : `${owner.podNamespace}/${owner.podName}`;
  return owner.ifName === 'eth0' ? name : `${name} ${owner.ifName}`;
}

/**
 * Renders the addresses of a node whose supply is a CiliumNode in the words of `cilium status --all-addresses`: how many
 * of each family are allocated, of how many, and by whom.
 */
function renderIpam(addresses: readonly AddressView[]): string {
  const families = ([4, 6] as const).flatMap((family) => {
    const all = addresses.filter((address) => address.family === family);
    // An address out of the pool is allocated, and not one of it.
    const listed = all.filter(({ isUnlisted }) => isUnlisted !== true).length;
    return all.length === 0 ? [] : [`IPv${family}: ${all.filter(isAllocated).length}/${listed} allocated`];
  });
  const lines = addresses
    .filter(isAllocated)
    .map((address) => `  ${address.ip} (${plainText(ownerOf(address))})\n`)
    .sort();
  return `IPAM: ${families.join(', ') || 'IPv4: 0/0 allocated'}\nAllocated addresses:\n${lines.join('')}`;
}

/** In use by a Pod, or reserved for the node: such an owner is no Pod, and has no slash. */
function isAllocated({ use, keptFor }: AddressView): boolean {
  return use === 'in-use' || keptFor?.pods.includes('/') === false;
}

function ownerOf({ owner, keptFor }: AddressView): string {
  if (owner === undefined) return keptFor?.pods ?? '';
  const { podNamespace, podName, containerId } = owner;
  return podName === '' ? containerId : `${podNamespace}/${podName}`;
}
