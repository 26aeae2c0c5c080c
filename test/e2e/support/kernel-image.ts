import { setTimeout as sleep } from 'node:timers/promises';
import type { NetnsView } from '../../../sim/support/netns.ts';

/** Duplicate address detection takes two seconds; on a link that is down it does not end. */
const DETECTION_MS = 5_000;

/**
 * Everything that a repair may change of some namespaces, as iproute2, nft and the files of /proc tell it; a line each.
 * Waits, bounded, until no IPv6 address is tentative: its end changes addresses and routes, and nobody did it.
 */
export async function kernelImage(views: readonly NetnsView[]): Promise<readonly string[]> {
  const untilMs = performance.now() + DETECTION_MS;
  for (;;) {
    const image = (await Promise.all(views.map(imageOf))).flat();
    if (!image.some((line) => / tentative /.test(line)) || performance.now() > untilMs) return image;
    await sleep(100);
  }
}

/** Lines of one image that are not in the other, marked. Empty when they are the same. */
export function changesBetween(before: readonly string[], after: readonly string[]): readonly string[] {
  const [was, is] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !is.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !was.has(line)).map((line) => `+ ${line}`),
  ];
}

const SETTINGS = ['ip_forward', 'rp_filter', 'forwarding', 'accept_ra', 'accept_dad', 'disable_ipv6'];

async function imageOf(view: NetnsView): Promise<readonly string[]> {
  const commands = [
    ['ip', '-d', '-o', 'link'],
    ['ip', '-o', 'address'],
    ['ip', '-N', '-4', 'route', 'show', 'table', 'all'],
    ['ip', '-N', '-6', 'route', 'show', 'table', 'all'],
    ['ip', '-N', '-4', 'rule'],
    ['ip', '-N', '-6', 'rule'],
    // What the kernel learned comes and goes by itself.
    ['ip', 'neigh', 'show', 'nud', 'permanent'],
    ['nft', '-s', 'list', 'ruleset'],
    ['grep', '-r', '-H', '', ...SETTINGS.map((name) => `--include=${name}`), '/proc/sys/net'],
  ];
  const answers = await Promise.all(commands.map((argv) => view.tryRun(argv)));
  const lines = answers.flatMap(({ stdout }) => stdout.split('\n'));
  // Timers of a bridge run by themselves.
  return lines.map((line) => `${view.name}: ${line.replaceAll(/_timer +[\d.]+/g, '_timer')}`);
}
