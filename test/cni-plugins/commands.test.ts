import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { PLUGIN } from '../../agent/api/messages.ts';
import type { ReplyInitOf } from '../../agent/api/service.ts';
import type { AgentCall } from '../../cni-plugins/agent-client.ts';
import { CallError } from '../../cni-plugins/client/call-error.ts';
import { type Context, execute } from '../../cni-plugins/commands.ts';
import { decodeConf } from '../../cni-plugins/skel/conf.ts';
import { decodeEnv } from '../../cni-plugins/skel/env.ts';
import { removeDeletion, spoolDeletion } from '../../cni-plugins/spool.ts';
import { makeFolder } from './support/test-agent.ts';

/**
 * Makes a DEL whose agent does not answer the first call and gives `second` to the next; undefined is silence again.
 * `seen` is how many files the spool had when the second call came in.
 */
function delOfLateAgent(t: ExecutionContext, second: ReplyInitOf<'del'> | undefined) {
  const folder = makeFolder();
  t.teardown(folder.remove);
  const directory = join(folder.path, 'run', 'deletions');
  let calls = 0;
  let seen = 0;
  const call = (async () => {
    calls++;
    if (calls === 2 && isFolder(directory)) seen = readdirSync(directory).length;
    if (calls !== 2 || second === undefined) throw new CallError('DEADLINE', 'no answer within 8000 ms');
    return { agentVersion: '', ...second };
  }) as AgentCall;
  const context: Context = {
    plugin: 'tke-route-eni',
    env: decodeEnv({ CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'c1', CNI_IFNAME: 'eth0' }),
    conf: decodeConf('{"cniVersion":"1.0.0","name":"net"}', 'tke-route-eni', 'DEL'),
    call,
    nowMs: () => 1,
    openPlugins: () => Promise.reject(new Error('no other plugin is needed')),
    delegation: { isUsed: () => false, open: () => Promise.reject(new Error('no other network is asked for')) },
    spool: {
      store: async (sandbox, network) => {
        const written = { writtenAtMs: 1, writtenAtBootMs: 1 };
        const path = spoolDeletion(directory, { plugin: PLUGIN.PLUGIN_ROUTE_ENI, network, sandbox, ...written });
        return () => removeDeletion(path);
      },
    },
  };
  return { context, directory, seen: () => seen };
}

test('execute: takes a DEL back from disk when the second try succeeds', async (t) => {
  const { context, directory, seen } = delOfLateAgent(t, {});
  t.is(await execute(context), '');
  t.is(seen(), 1, 'the file was there before the second try');
  t.deepEqual(readdirSync(directory), []);
});

for (const [what, second] of [
  ['is refused', { error: { code: 11, msg: 'starting' } }],
  ['stays without an answer', undefined],
] as const) {
  test(`execute: leaves a DEL on disk when the second try ${what}`, async (t) => {
    const { context, directory } = delOfLateAgent(t, second);
    t.is(await execute(context), '');
    t.is(readdirSync(directory).length, 1);
  });
}

/**
 * Makes the spool impossible, whoever runs the test: root may write anywhere, but not below a file. It stands in the place of the
 * parent, because one in the place of the folder itself is moved aside.
 */
function breakDisk(directory: string): void {
  writeFileSync(dirname(directory), 'a file where the parent should be');
}

test('execute: is content with the second try when the disk fails', async (t) => {
  const { context, directory } = delOfLateAgent(t, {});
  breakDisk(directory);
  t.is(await execute(context), '');
});

test("execute: passes the second try's error on when the disk fails", async (t) => {
  const { context, directory } = delOfLateAgent(t, { error: { code: 11, msg: 'starting' } });
  breakDisk(directory);
  await t.throwsAsync(execute(context), { code: 11, message: 'starting' });
});

test('execute: answers code 5 when there is neither agent nor disk', async (t) => {
  const { context, directory } = delOfLateAgent(t, undefined);
  breakDisk(directory);
  const error = await t.throwsAsync(execute(context), { code: 5, message: /the DEL cannot be left for it: E/ });
  t.regex(String(error && 'details' in error && error.details), /^DEL: DEADLINE: no answer within 8000 ms/);
});

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
