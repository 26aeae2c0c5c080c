import { readdirSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { attach } from '../../../agent/attachment/attach.ts';
import { detach } from '../../../agent/attachment/detach.ts';
import { type AgentUseCases, agentImplementation } from '../../../agent/server/agent-service.ts';
import { readPendingInput, serveGrpc } from '../../../agent/server/grpc-server.ts';
import { Child } from '../../../sim/support/child.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { createTestNode } from '../use-cases/fixtures.ts';

/** Sends one ADD as an executable does, and waits. */
const CALLER = `
const { connect } = require('node:net');
const http2 = require('node:http2');
const session = http2.connect('http://localhost', { createConnection: () => connect(process.argv[1]) });
const stream = session.request({ ':method': 'POST', ':path': '/tke.eni.v1.Agent/Add', 'content-type': 'application/grpc', te: 'trailers' });
const sandbox = Buffer.from('\\x0a\\x02c1\\x12\\x04eth0\\x1a\\x0d/run/netns/n1', 'latin1');
const request = Buffer.concat([Buffer.from([8, 1, 0x12, sandbox.length]), sandbox]);
stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, request.length]), request]));
stream.resume();
`;

/** Kills a process and waits, without a turn of the event loop, until the kernel has closed its sockets. */
function killNow(pid: number): void {
  process.kill(pid, 'SIGKILL');
  // A thread that has not ended yet keeps the sockets open.
  const isOver = (): boolean =>
    readdirSync(`/proc/${pid}/task`).length === 1 && /^State:\sZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  for (let look = 0; look < 1e6; look++) if (isOver()) return;
  throw new Error(`process ${pid} does not end`);
}

/** Calls ADD, and kills the caller while the Pod is being wired. Returns how many leases are left. */
async function killCaller(t: ExecutionContext, readPending: () => Promise<void>): Promise<number> {
  const dir = createTempDir('caller-left');
  const socketPath = dir.join('agent.sock');
  const node = createTestNode(4);
  const ended = Promise.withResolvers<void>();
  const useCases = {
    attach: (...[command, signal]: Parameters<AgentUseCases['attach']>) =>
      attach({ ...node.deps, readPendingInput: readPending }, command, signal).finally(ended.resolve),
    ignoredKeys: () => undefined,
    addressing: () => [],
  } as unknown as AgentUseCases;
  const server = await serveGrpc(agentImplementation(useCases, 'r1', new AbortController().signal), { socketPath });
  const caller = new Child([process.execPath, '--eval', CALLER, socketPath]);
  let isKilled = false;
  node.wiring.duringCheck = () => {
    killNow(caller.pid);
    isKilled = true;
  };
  await waitUntil(() => isKilled, { what: 'the ADD', timeoutMs: 20_000, explain: () => caller.stderr });
  await ended.promise;
  const left = node.state.leases.size;
  await detach(node.deps, { containerId: 'c1', ifName: 'eth0' });
  await server.drain(0);
  node.close();
  dir.close();
  t.is(node.wiring.ips.length, 0);
  return left;
}

test('attach: is undone when the caller is killed while the Pod is wired', async (t) => {
  for (let round = 0; round < 5; round++) t.is(await killCaller(t, readPendingInput), 0);
});

test('attach: stays attached when one turn of the event loop is all that is waited for', async (t) => {
  // The control: this scene finds an agent that does not read what the kernel has for it.
  let left = 0;
  for (let round = 0; round < 10 && left === 0; round++) left += await killCaller(t, setImmediate);
  t.is(left, 1);
});
