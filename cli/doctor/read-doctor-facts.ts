import { withNetns } from '../../netlink/netns.ts';
import type { CommandContext } from '../command.ts';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import { readNodeFacts } from '../node/read-node-facts.ts';
import { netnsPathOf, withNodeNetns } from '../node/with-node-netns.ts';
import { askStatus } from './ask-status.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import { knownFrom, openHostTree } from './host-tree.ts';
import { readCloudInit } from './read-cloud-init.ts';
import { readCni } from './read-cni.ts';
import { readDifferences } from './read-differences.ts';
import { readIptables } from './read-iptables.ts';
import { type ProcFacts, readProc } from './read-kernel.ts';
import { readNetworkManager } from './read-network-manager.ts';
import { readNetworkd } from './read-networkd.ts';
import { readDhcpClients, readInotify } from './read-processes.ts';
import { readSocket } from './read-socket.ts';
import { readStateDir } from './read-state-dir.ts';
import { readSysctlFiles } from './read-sysctl-files.ts';

/** Folders of CNI on the host. */
export type CniFolders = { readonly confDir: string; readonly binDir: string };

/**
 * Reads all that the checks judge by; changes nothing. What may not be read is told as unknown.
 * @throws CliError when the node's own namespace cannot be read
 */
export async function readDoctorFacts(
  { global }: Pick<CommandContext, 'global'>,
  folders: CniFolders,
): Promise<DoctorFacts> {
  const node = await readNodeFacts({ global });
  const tree = openHostTree(global.hostRoot);
  const proc = knownFrom(() => withNodeNetns(global, (netns) => (netns ? withNetns(netns, readProc) : readProc())));
  const netnsPath = global.netns === undefined ? undefined : netnsPathOf(global);
  const agent = await readAgent(global.socket);
  return {
    node,
    networkd: knownFrom(() => readNetworkd(tree)),
    networkManager: knownFrom(() => readNetworkManager(tree)),
    cloudInit: knownFrom(() => readCloudInit(tree)),
    sysctlFiles: knownFrom(() => readSysctlFiles(tree)),
    iptables: await iptablesOf(proc, netnsPath),
    kernel: proc.kind === 'known' ? known(proc.value.kernel) : proc,
    inotify: knownFrom(readInotify),
    dhcpClients: knownFrom(() => readDhcpClients(netnsPath ?? '/proc/self/ns/net')),
    ...agent,
    differences: await readDifferences(global),
    stateDir: knownFrom(() => readStateDir(global.stateDir)),
    cni: knownFrom(() => readCni(tree, folders.confDir, folders.binDir)),
  };
}

async function readAgent(path: string): Promise<Pick<DoctorFacts, 'socket' | 'status'>> {
  const socket = await readSocket(path);
  const silent = unknown('no agent answers', 'see agent-dead');
  if (socket.kind === 'unknown' || socket.value.problem !== undefined) return { socket, status: silent };
  const answer = await askStatus(path);
  return answer.problem === undefined
    ? { socket, status: answer.status }
    : { socket: known({ path, problem: answer.problem }), status: silent };
}

async function iptablesOf(proc: Known<ProcFacts>, netnsPath: string | undefined): Promise<DoctorFacts['iptables']> {
  const tables = proc.kind === 'known' ? proc.value.legacyTables : proc;
  if (tables.kind === 'unknown') return unknown('iptables shows itself to root only', tables.next);
  return known(await readIptables({ netnsPath, legacyTables: tables.value }));
}
