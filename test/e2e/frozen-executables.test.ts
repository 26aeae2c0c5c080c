import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { Child } from '../../sim/support/child.ts';
import type { JsonObject } from '../../sim/support/netns.ts';
import { run } from '../../sim/support/run.ts';
import { buildAll } from '../../tools/build.ts';
import { callExecutable } from '../cni-plugins/support/call-executable.ts';
import { findDifferences, findLosses } from '../frozen/find-differences.ts';
import { frozenReleases, readFrozen, readRelease } from '../frozen/frozen.ts';
import { decodeByProto, readContracts } from '../frozen/record/protos.ts';
import { recordDocuments } from '../frozen/stage/agent-documents.ts';
import { type AgentStage, openAgentStage } from '../frozen/stage/agent-stage.ts';
import { recordClusterDocuments } from '../frozen/stage/cluster-documents.ts';
import { CNI_STEPS } from '../frozen/stage/cni-steps.ts';
import { framesOf, messageIn, plainHeadersIn } from '../frozen/stage/http2.ts';
import { openReplayedOps, type RelayedCall, sendRequest } from '../frozen/stage/ops-relay.ts';
import { asRecordedCall, makeSandboxes, type RecordedCall, withBackend } from '../frozen/stage/record-cni.ts';
import { recordExits } from '../frozen/stage/record-exits.ts';
import { recordLeftFiles, recordSpooledDel } from '../frozen/stage/record-files.ts';
import { asRecordedOps, OPS_COMMANDS } from '../frozen/stage/record-ops.ts';
import { openReplayedAgent, replayClient } from '../frozen/stage/replay-cni.ts';
import { shapeOf } from '../frozen/stage/shape.ts';
import { executablePath, pluginDir } from '../support/executables.ts';
import { createTempDir, type TempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

// Executables of today against what those of recorded releases wrote, both ways; bytes are decoded by another codec.

const root = readContracts();
const PACKAGE = 'tke.eni.v1';
/** What differs with each release, or with each moment. */
const OF_RELEASE = ['client_version', 'agent_version', 'deadline_unix_ms', 'user-agent'];

let stage: AgentStage;
let files: TempDir;

test.before(async (t) => {
  t.timeout(240_000);
  await buildAll(() => undefined);
  files = createTempDir('frozen');
  stage = await openAgentStage();
  await makeSandboxes(stage);
});
test.after.always(async () => {
  await stage?.close();
  files?.close();
});

/** The calls of CNI executables of a release, in the order in which they were made. */
function callsOf(release: string): readonly RecordedCall[] {
  return CNI_STEPS.flatMap((step) => {
    const recorded = readRelease(release, `wire/cni-calls/${step.name}`);
    return recorded === undefined ? [] : [asRecordedCall(step, recorded)];
  });
}

function typeOf(method: string, side: 'request' | 'reply') {
  const [, service = '', name = ''] = method.split('/');
  const { requestType = '', responseType = '' } = root.lookupService(service).methods[name] ?? {};
  return root.lookupType(`${PACKAGE}.${side === 'request' ? requestType : responseType}`);
}

/** A message without what belongs to a release. */
function decoded(method: string, side: 'request' | 'reply', bytes: Buffer): JsonObject {
  const entries = Object.entries(decodeByProto(typeOf(method, side), bytes));
  return Object.fromEntries(entries.filter(([name]) => !OF_RELEASE.includes(name)));
}

function bytesOf(call: RecordedCall, side: 'client' | 'server'): Buffer {
  return Buffer.from(
    call.turns
      .filter(({ from }) => from === side)
      .map(({ bytes }) => bytes)
      .join(''),
    'hex',
  );
}

function methodOf(call: RecordedCall): string {
  return plainHeadersIn(bytesOf(call, 'client')).find(([name]) => name === ':path')?.[1] ?? '';
}

for (const release of frozenReleases()) {
  test.serial(`the agent answers what executables of ${release} sent, byte for byte, as their agent did`, async (t) => {
    t.timeout(120_000);
    for (const call of callsOf(release)) {
      const ended = CNI_STEPS.find(({ name }) => name === call.name)?.ends;
      if (ended !== undefined) await stage.end(ended);
      const method = methodOf(call);
      const reply = decoded(method, 'reply', await replayClient(call, stage.node.agent.socketPath));
      const before = decoded(method, 'reply', messageIn(bytesOf(call, 'server')) ?? Buffer.alloc(0));
      t.deepEqual(findLosses(shapeOf(before), shapeOf(reply)), [], call.name);
      t.deepEqual(reply['error'], before['error'], call.name);
      t.deepEqual([reply['released'], reply['differences']], [before['released'], before['differences']], call.name);
    }
  });

  test.serial(
    `the executables send what those of ${release} sent, and print the same for the same answer`,
    async (t) => {
      t.timeout(120_000);
      const calls = callsOf(release);
      const socketPath = files.join(`${release}.sock`);
      const agent = await openReplayedAgent(calls, socketPath);
      try {
        for (const [index, call] of calls.entries()) {
          const stdin = withBackend(call.stdin, socketPath);
          const { code, stdout } = await callExecutable([join(pluginDir(), call.plugin)], call.env, stdin);
          t.deepEqual([code, stdout], [call.exitCode, call.stdout], call.name);
          const said = saidIn(agent.received[index] ?? Buffer.alloc(0), call);
          t.deepEqual(findLosses(saidIn(bytesOf(call, 'client'), call), said), [], call.name);
        }
      } finally {
        agent.close();
      }
    },
  );

  test.serial(`tke-eni prints for answers of ${release} what that of ${release} printed`, async (t) => {
    for (const command of OPS_COMMANDS) {
      const recorded = readRelease(release, `wire/ops-calls/${command}`);
      if (recorded?.['document'] === undefined) continue;
      const { calls: all, document } = asRecordedOps(recorded);
      const calls = lastOfEachPath(all);
      const socketPath = files.join(`ops-${release}-${command}.sock`);
      const agent = await openReplayedOps(socketPath, calls);
      try {
        const places = ['--socket', socketPath, '--state-dir', files.path, '--agent-timeout', '10'];
        const argv = [executablePath('tke-eni'), command, '-o', 'json', ...places];
        t.deepEqual(findLosses(document, JSON.parse(await run(argv))), [], command);
        for (const [index, { path, request }] of agent.calls.entries()) {
          const before = calls[index]?.request ?? Buffer.alloc(0);
          t.deepEqual(findLosses(decoded(path, 'request', before), decoded(path, 'request', request)), [], command);
        }
      } finally {
        agent.close();
      }
    }
  });
}

/** 0.1.0 asked twice for the summary, and printed the second. */
function lastOfEachPath(calls: ReturnType<typeof asRecordedOps>['calls']): ReturnType<typeof asRecordedOps>['calls'] {
  return [...new Map(calls.map((call) => [call.path, call])).values()];
}

test.serial('tke-eni watch: prints each event of recorded agents', async (t) => {
  for (const release of frozenReleases()) {
    const recorded = readRelease(release, 'wire/ops-calls/watch');
    if (recorded === undefined) continue;
    const { calls } = asRecordedOps(recorded);
    const socketPath = files.join(`watch-${release}.sock`);
    const agent = await openReplayedOps(socketPath, calls);
    const argv = [executablePath('tke-eni'), 'watch', '-o', 'json', '--kind', 'add', '--kind', 'del'];
    const child = new Child([...argv, '--socket', socketPath, '--state-dir', files.path]);
    try {
      const lines = () => child.stdout.split('\n').slice(0, -1);
      await waitUntil(() => lines().length === 2, { what: 'two events', explain: () => child.stdout + child.stderr });
      const printed = lines().map((line): JsonObject => JSON.parse(line));
      const told = calls.flatMap(({ path, replies }) => replies.map((reply) => decoded(path, 'reply', reply)));
      t.is(told.length, 2);
      t.deepEqual(
        printed.map(({ kind, atMs, operations }) => [kind, String(atMs), operations]),
        told.map(({ at_unix_ms, operations }, index) => [['add', 'del'][index], at_unix_ms, operations]),
      );
    } finally {
      await child.stop('SIGTERM');
      agent.close();
    }
  }
});

/** Kinds and flags of frames, headers and message: what a client says, without what belongs to its release. */
function saidIn(sent: Buffer, call: RecordedCall): object {
  const headers = plainHeadersIn(sent).filter(([name]) => !OF_RELEASE.includes(name));
  const message = decoded(methodOf(call), 'request', messageIn(sent) ?? Buffer.alloc(0));
  // Only what is said before an answer: whether the answer's settings are acknowledged depends on who is faster.
  const frames = framesOf(sent).filter(({ type, flags }) => !(type === SETTINGS && flags === ACK));
  const settings = frames.filter(({ type }) => type === SETTINGS).map(({ payload }) => payload.toString('hex'));
  return { headers, message, settings, frames: frames.map(({ type, flags, streamId }) => [type, flags, streamId]) };
}

const SETTINGS = 4;
const ACK = 1;

test.serial('tke-eni cluster: prints documents of the recorded names and types', async (t) => {
  t.timeout(120_000);
  t.deepEqual(findDifferences(readFrozen('json/cluster'), await recordClusterDocuments(stage)), []);
});

test.serial(
  'tke-eni: prints documents of the recorded names and types, of a node that is well and one that is not',
  async (t) => {
    t.timeout(240_000);
    const { documents } = await recordDocuments(stage, () => answersOldRequests(t));
    t.deepEqual(findDifferences(readFrozen('json/node'), documents), []);
  },
);

/** Sends the agent what tke-eni of each release asked, and compares what it says with what was said then. */
async function answersOldRequests(t: ExecutionContext): Promise<void> {
  for (const release of frozenReleases()) {
    for (const command of OPS_COMMANDS) {
      const recorded = readRelease(release, `wire/ops-calls/${command}`);
      for (const call of recorded === undefined ? [] : asRecordedOps(recorded).calls) {
        if (isStream(call)) continue;
        const reply = await sendRequest(stage.node.agent.socketPath, call);
        const [before = Buffer.alloc(0)] = call.replies;
        const losses = findLosses(shapeOfMessage(call.path, before), shapeOfMessage(call.path, reply));
        t.deepEqual(losses, [], `${command}: ${call.path}`);
      }
    }
  }
}

function isStream({ path }: RelayedCall): boolean {
  const [, service = '', name = ''] = path.split('/');
  return root.lookupService(service).methods[name]?.responseStream === true;
}

function shapeOfMessage(method: string, bytes: Buffer): Readonly<Record<string, string>> {
  const type = typeOf(method, 'reply');
  return shapeOf(type.toObject(type.decode(bytes), { defaults: true, longs: Number, enums: Number }));
}

/** The names in a recorded content, with those that were added since. */
function shapeFrozen(name: string): object {
  const newest = frozenReleases().findLast((release) => readRelease(release, name) !== undefined) ?? '';
  return { ...shapeOf(readRelease(newest, name)), ...readRelease('next', name) };
}

test.serial('the agent leaves files of the recorded names, with the recorded names in them', async (t) => {
  const { journal, names, ...left } = recordLeftFiles(stage);
  t.deepEqual(findDifferences(readFrozen('files/left/names'), names), []);
  for (const [name, file] of Object.entries(left)) {
    t.deepEqual(findDifferences(shapeFrozen(`files/left/${name}`), shapeOf(file)), [], name);
  }
  t.deepEqual(findDifferences(shapeFrozen('journal/agent'), shapeOf(journal)), []);
});

test('an executable leaves a DEL for an agent that is not there in a file of the recorded name, with the recorded names', async (t) => {
  const spooled = await recordSpooledDel();
  t.is<unknown, unknown>(spooled.name, readFrozen('files/spooled')['name']);
  t.deepEqual(findDifferences(shapeFrozen('files/spooled'), shapeOf(spooled)), []);
});

test('the executables end with the recorded exit codes, and speak the recorded CNI versions', async (t) => {
  t.timeout(120_000);
  t.deepEqual(findDifferences(readFrozen('names/exit-codes'), await recordExits()), []);
});
