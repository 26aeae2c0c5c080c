import { execFile } from 'node:child_process';
import { arch, cpus, freemem, hostname, release as kernelRelease, loadavg, totalmem, uptime, version } from 'node:os';
import { flowFilterOf } from '../../../dataplane/fast-path/flow-filter.ts';
import { FlowMapError, readFlows } from '../../../dataplane/fast-path/flow-maps.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { isNftError } from '../../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE } from '../../../dataplane/numbers.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { netnsPathOf, withNodeNetns } from '../../../inspection/node/with-node-netns.ts';
import { withNetns } from '../../../netlink/netns.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import { readRegularText } from '../../../runtime/read-regular-file.ts';
import { release } from '../../../runtime/release.ts';
import { sysctlName, tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';
import type { GlobalArgs } from '../../command/command.ts';
import { type BundlePart, PART_BYTES, type PartContent, textPart, valuePart } from './bundle-part.ts';

/** Time limit of a tool: nft needs seconds for a rule set of many Services. */
const TOOL_MS = 20_000;
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const ENV = { PATH, LC_ALL: 'C' };

/** Counters of the kernel by part: what `ip -s link` and `ss -s` count, which our container image does not have. */
const COUNTERS = {
  'kernel/link-statistics.txt': ['dev'],
  'kernel/sockets.txt': ['sockstat', 'sockstat6'],
} as const;
/** A line has about 120 bytes, and a node some thousand links at most. */
const MAX_COUNTER_BYTES = 4 << 20;

/** Returns the parts about kernel and machine: sysctls, counters, versions, and the rule set as nft lists it. */
export function toolParts(global: GlobalArgs): readonly BundlePart[] {
  const inNetns = (argv: readonly string[]) =>
    global.netns === undefined ? argv : ['nsenter', `--net=${netnsPathOf(global)}`, '--', ...argv];
  const tool = (path: string, argv: readonly string[]): BundlePart => ({
    path,
    collect: (signal) => runTool(inNetns(argv), signal),
  });
  return [
    { path: 'node/machine.json', collect: async () => valuePart(machine(global.hostRoot)) },
    { path: 'node/sysctls.json', collect: async () => valuePart(await sysctls(global)) },
    tool('kernel/nft-ruleset.txt', ['nft', 'list', 'ruleset']),
    ...Object.entries(COUNTERS).map(
      ([path, names]): BundlePart => ({ path, collect: async () => textPart(readCounters(global, names)) }),
    ),
    tool('node/nft-version.txt', ['nft', '--version']),
  ];
}

/** Reads files of /proc/net of the node's namespace. A kernel without IPv6 lacks some. @throws UserError */
function readCounters(global: GlobalArgs, names: readonly string[]): string {
  const read = (): readonly string[] =>
    names.map((name) => `# /proc/net/${name}\n${readOrEmpty(`/proc/thread-self/net/${name}`, MAX_COUNTER_BYTES)}`);
  return withNodeNetns(global, (netns) => (netns === undefined ? read() : withNetns(netns, read))).join('');
}

function machine(hostRoot: string): Readonly<Record<string, unknown>> {
  const [cpu] = cpus();
  return {
    tool: release,
    hostname: hostname(),
    kernel: kernelRelease(),
    kernelVersion: version(),
    arch: arch(),
    cpus: cpus().length,
    cpu: cpu?.model ?? '',
    memoryBytes: totalmem(),
    freeMemoryBytes: freemem(),
    uptimeS: Math.round(uptime()),
    load: loadavg(),
    os: readOrEmpty(resolveHostPath(hostRoot, '/etc/os-release')),
  };
}

async function sysctls(global: GlobalArgs): Promise<unknown> {
  const { host } = await readNodeFacts({ global }, { insides: 'none', nft: false });
  return Object.fromEntries([...host.sysctls].toSorted(([a], [b]) => compareTexts(a, b)));
}

/** Largest file of the host that is read, bytes. */
const MAX_FILE_BYTES = 64 * 1024;

function readOrEmpty(path: string, maxBytes = MAX_FILE_BYTES): string {
  try {
    return readRegularText(path, maxBytes);
  } catch {
    // A container image may lack this file.
    return '';
  }
}

/** Runs a tool and returns what it printed. A tool that is not installed, as in our container image, is skipped. */
async function runTool([file = '', ...args]: readonly string[], signal: AbortSignal): Promise<PartContent> {
  const done = Promise.withResolvers<PartContent>();
  const options = { timeout: TOOL_MS, maxBuffer: 4 * PART_BYTES, encoding: 'utf8', env: ENV, signal } as const;
  execFile(file, args, options, (error, stdout, stderr) => {
    if (error === null) done.resolve(textPart(stdout));
    else if (error.code === 'ENOENT') done.resolve({ kind: 'skipped', why: `there is no ${file} in ${PATH}` });
    else done.reject(new Error(stderr.trim() || error.message, { cause: error }));
  });
  return await done.promise;
}

/** Flows that are listed of at most 131,072; their number is always there. */
const MAX_FLOWS = 1_000;

/** Returns the part about the fast path: its filters on links, the flows that are followed, its flowtable, and its setting. */
export function fastPathPart(global: GlobalArgs): BundlePart {
  return {
    path: 'kernel/fast-path.json',
    collect: async () => {
      const { host } = await readNodeFacts({ global }, { insides: 'none', nft: false });
      const { filters } = host.traffic;
      const setting = sysctlName(tcpBeLiberal());
      if (filters.kind === 'unknown') return { kind: 'missing', why: filters.why };
      const ours = filters.value.flatMap((filter) => flowFilterOf(filter) ?? []);
      const names = new Map(host.links.map(({ ifindex, ifname }) => [ifindex, ifname]));
      return valuePart({
        settings: { [setting]: host.sysctls.get(setting) ?? null },
        filters: ours.map((filter) => ({ ifname: names.get(filter.ifindex) ?? null, ...filter })),
        ...followed(ours[0]?.programId),
        ...(await flowtable(global)),
      });
    },
  };
}

/** The flows of one program are those of all: they share their maps. */
function followed(programId: number | undefined): Readonly<Record<string, unknown>> {
  if (programId === undefined) return { flowCount: 0, flows: [] };
  try {
    const flows = readFlows(programId);
    // JSON has no number for nanoseconds since the start.
    const shown = flows.slice(0, MAX_FLOWS).map((flow) => ({ ...flow, expiryNs: String(flow.expiryNs) }));
    return { flowCount: flows.length, flows: shown };
  } catch (error) {
    if (!(error instanceof FlowMapError)) throw error;
    return { flowsNotRead: error.message };
  }
}

/** The table of the flowtable as nft lists it, by lines; null where there is none. */
async function flowtable(global: GlobalArgs): Promise<Readonly<Record<string, unknown>>> {
  const nft = openNft(global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) });
  try {
    const listing = await nft.read(FLOWTABLE_TABLE);
    return { flowtable: listing?.trimEnd().split('\n') ?? null };
  } catch (error) {
    if (!isNftError(error)) throw error;
    return { flowtableNotRead: error.message };
  }
}
