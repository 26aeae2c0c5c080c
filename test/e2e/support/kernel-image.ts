import type { NetnsView } from '../../support/netns.ts';

/** Everything that a repair may change of some namespaces, as iproute2, nft and the files of /proc tell it; a line each. */
export async function kernelImage(views: readonly NetnsView[]): Promise<readonly string[]> {
  return (await Promise.all(views.map(imageOf))).flat();
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
