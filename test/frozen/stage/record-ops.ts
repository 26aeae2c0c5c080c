import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { executablePath } from '../../support/executables.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { readContracts } from '../record/protos.ts';
import { type AgentStage, fileOf } from './agent-stage.ts';
import { openOpsRelay, type RelayedCall } from './ops-relay.ts';

/** What one command asked the agent, what it was answered, and what it printed. */
type RecordedOps = {
  readonly calls: readonly RelayedCall[];
  /** Of commands that print what they were answered and nothing else. */
  readonly document?: unknown;
};

/** Commands that print nothing but what the agent says. */
const TELLING = ['status', 'pool', 'enis', 'events'];
/** All commands whose calls are recorded. */
export const OPS_COMMANDS = [...TELLING, 'repair', 'watch'];

/** Takes a recorded value for what it is. */
export function asRecordedOps({ calls, document }: JsonObject): RecordedOps {
  const list = Array.isArray(calls) ? calls.filter(isObject) : [];
  return { calls: list.map(asRelayedCall), document };
}

function asRelayedCall({ path, request, replies }: JsonObject): RelayedCall {
  const bytes = (hex: unknown) => Buffer.from(String(hex), 'hex');
  return { path: String(path), request: bytes(request), replies: Array.isArray(replies) ? replies.map(bytes) : [] };
}

const SERVICE = 'tke.eni.v1.Ops';

/** Runs commands through a relay on a stage that has Pods, and returns what went through it. */
export async function recordOps(stage: AgentStage): Promise<Readonly<Record<string, RecordedOps>>> {
  const { methodsArray } = readContracts().lookupService(SERVICE);
  const paths = methodsArray.map(({ name }) => `/${SERVICE}/${name}`);
  const socketPath = fileOf(stage, 'relay.sock');
  const relay = await openOpsRelay(socketPath, stage.node.agent.socketPath, paths);
  const found: Record<string, RecordedOps> = {};
  try {
    for (const command of [...TELLING, 'repair']) {
      const before = relay.calls.length;
      const { stdout } = await stage.cli([command, '-o', 'json'], { socketPath });
      const calls = relay.calls.slice(before);
      found[command] = TELLING.includes(command) ? { calls, document: JSON.parse(stdout) } : { calls };
    }
    found['watch'] = { calls: [await watchPod(stage, socketPath, () => relay.calls.at(-1))] };
    return found;
  } finally {
    relay.close();
  }
}

/** Follows the agent while a Pod comes and goes. */
async function watchPod(
  stage: AgentStage,
  socketPath: string,
  last: () => RelayedCall | undefined,
): Promise<RelayedCall> {
  const { node, room } = stage;
  const argv = [
    executablePath('tke-eni'),
    'watch',
    '-o',
    'json',
    '--kind',
    'add',
    '--kind',
    'del',
    '--socket',
    socketPath,
  ];
  const child = node.netns.start([...room.wrap, ...argv]);
  try {
    await waitUntil(() => last()?.path.endsWith('/Watch') === true, { what: 'a watch' });
    const { pod, options } = await stage.pod('guest-0');
    await node.add(pod, options('tke-route-eni'));
    await node.delete(pod);
    await waitUntil(() => (last()?.replies.length ?? 0) >= 2, { what: 'two events', explain: () => child.stderr });
    const call = last();
    if (call === undefined) throw new Error('no watch');
    return call;
  } finally {
    await child.stop('SIGTERM');
  }
}
