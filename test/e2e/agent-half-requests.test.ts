import { existsSync, readdirSync } from 'node:fs';
import test from 'ava';
import { Child } from '../../sim/support/child.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial } from './support/trial.ts';

const METRICS_PORT = 61680;
const GRPC_PORT = 61677;
const REQUESTS = 20_000;
/** The bounds of all ports together, and what 60 ADDs at once need. */
const DESCRIPTORS = 512;

/** Sends half a request on each of many connections to two ports, a thousand at once, until it is stopped, at most two minutes. */
const ATTACK = `
const net = require('node:net');
let sent = 0;
const open = (port, text) => {
  if (sent >= ${REQUESTS}) return;
  sent += 1;
  const next = () => setImmediate(open, port, text);
  net.connect(port, '127.0.0.1', function () { this.write(text); }).on('error', () => {}).on('close', next).resume();
};
for (let i = 0; i < 700; i++) open(${METRICS_PORT}, 'GET /metrics HT');
for (let i = 0; i < 300; i++) open(${GRPC_PORT}, 'PRI * HTTP/2.0');
setInterval(() => { process.stdout.write(sent + '\\n'); }, 200);
setTimeout(() => process.exit(0), 120_000);
`;

test('agent: half-sent requests on every port hold up no ADD and no DEL, and take bounded descriptors', async (t) => {
  t.timeout(120_000);
  const trial = await openTrial({ ruleMode: 'compact', flags: { 'listen-address': `127.0.0.1:${GRPC_PORT}` } });
  try {
    const { pid } = trial.agent;
    const limit = new Child(['prlimit', '--pid', String(pid), `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`]);
    t.is((await limit.exited).code, 0, limit.stderr);
    const attack = trial.node.netns.start([process.execPath, '--eval', ATTACK]);
    const sent = (): number => Number(attack.stdout.trim().split('\n').at(-1));
    let most = 0;
    for (let round = 0; round < 6; round++) {
      await waitUntil(() => sent() >= (round + 1) * 1_000 || undefined, { what: 'more requests' });
      const pod = await trial.addPod();
      t.true(await pod.netns.ping(trial.vpc.outside.ip));
      most = Math.max(most, readdirSync(`/proc/${pid}/fd`).length);
      await trial.delete(pod);
    }
    await attack.stop();
    t.log(`${sent()} half-sent requests, ${most} descriptors of ${DESCRIPTORS}`);
    t.true(existsSync(`/proc/${pid}`), trial.lastWords());
    const text = await trial.node.netns.run(['curl', '-s', `http://127.0.0.1:${METRICS_PORT}/healthz`]);
    t.is(text, 'ok\n');
  } finally {
    await trial.close();
  }
});
