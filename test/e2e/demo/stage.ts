import { NODE_ENI_CONFIG_KIND } from '../../../crd/node-eni-config-fields.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { IPAMD_PORT, type IpamdProcess } from '../../system/ipamd-process.ts';
import { quote, wrapText } from './format.ts';
import type { Kubectl } from './kubectl.ts';
import type { DemoSystem } from './scene.ts';

/** What an act plays on. */
export type Stage = {
  readonly system: DemoSystem;
  readonly kubectl: Kubectl;
  /** Says on standard error what is under way. */
  readonly progress: (text: string) => void;
  /** Prints on standard output. */
  readonly print: (text: string) => void;
  /** Notes what is not as it should be. */
  readonly fault: (text: string) => void;
};

/** Something that Kubernetes was told. */
type SeenEvent = { readonly about: string; readonly reason: string; readonly message: string };

/** Events of the cluster, by reason. */
function eventsOf(system: DemoSystem, reason: string): readonly SeenEvent[] {
  return system.cluster.server.objects('events').flatMap((event) => {
    const about: unknown = event['involvedObject'];
    if (event['reason'] !== reason || !isObject(about)) return [];
    const kind = about['kind'] === NODE_ENI_CONFIG_KIND.kind ? 'nec' : String(about['kind']).toLowerCase();
    return [{ about: `${kind}/${String(about['name'])}`, reason, message: String(event['message']) }];
  });
}

/** Waits for the first event of a reason, of certain objects where they are named. */
export function awaitEvent(system: DemoSystem, reason: string, among?: readonly string[]): Promise<SeenEvent> {
  const isWanted = ({ about }: SeenEvent): boolean => among === undefined || among.includes(about);
  return waitUntil(() => eventsOf(system, reason).find(isWanted), {
    what: `event ${reason}`,
    timeoutMs: 30_000,
    everyMs: 50,
    explain: () => system.logs().slice(-3_000),
  });
}

/** What a node's NodeENIConfig says of how it stands. */
export async function conditionText(system: DemoSystem, node: string): Promise<string> {
  const nec = await system.nec(node);
  const ready = nec?.status?.conditions?.find(({ type }) => type === 'Ready');
  const { status = '', reason = '', message = '' } = ready ?? {};
  return `  condition Ready=${status} (${reason}), nec/${node}:\n${wrapText(message, '    ')}`;
}

/** An event as text of many lines. */
export function eventText({ about, reason, message }: SeenEvent): string {
  return `  event ${reason}, ${about}:\n${wrapText(message, '    ')}`;
}

/** Lines of a replica's metrics, as its address gives them. */
export async function metricText(ipamd: IpamdProcess, pattern: RegExp): Promise<string> {
  const text = await ipamd.awaitHttp('/metrics');
  const lines = text.split('\n').filter((line) => !line.startsWith('#') && pattern.test(line));
  return quote(`curl ${ipamd.name}:${IPAMD_PORT}/metrics`, lines.join('\n'));
}

/** Seconds since a moment: `2.3 s`. */
export function secondsSince(startMs: number): string {
  return `${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
}
