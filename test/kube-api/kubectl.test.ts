import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { renderKubeconfig } from '../../sim/kube-api/kubeconfig.ts';
import { startKubeApi } from '../../sim/kube-api/start-kube-api.ts';
import { createTempDir } from '../support/temp-dir.ts';

const CRDS = fileURLToPath(new URL('../../conf/crd/', import.meta.url));
const EXAMPLE = fileURLToPath(new URL('../../conf/node.example.yaml', import.meta.url));

const version = spawnSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' });
const minor = version.status === 0 ? Number.parseInt(JSON.parse(version.stdout).clientVersion.minor, 10) : 0;
const run = minor >= 29 ? test : test.skip;
const exec = promisify(execFile);

run('kubectl: gets, applies, edits, watches and deletes', async (t) => {
  const folder = createTempDir('kubectl');
  const server = await startKubeApi();
  const config = folder.join('kubeconfig');
  writeFileSync(config, renderKubeconfig({ url: server.url, token: 'any' }));
  const env = { PATH: process.env['PATH'], HOME: folder.path, KUBECONFIG: config };
  const kubectl = async (...args: readonly string[]) => (await exec('kubectl', [...args], { env })).stdout.trim();
  try {
    await kubectl('apply', '-f', CRDS);
    t.regex(await kubectl('apply', '-f', EXAMPLE), /10\.0\.0\.10 created$/);
    t.regex(await kubectl('apply', '-f', EXAMPLE), /10\.0\.0\.10 unchanged$/);
    const [header = '', row = ''] = (await kubectl('get', 'nec', '-o', 'wide')).split('\n');
    t.deepEqual(header.split(/ +/), [
      'NAME',
      'ENIS',
      'IPS',
      'DESIRED',
      'ALLOCATABLE',
      'READY',
      'REASON',
      'MAX-ENIS',
      'IPS-PER-ENI',
      'INSTANCE',
      'TYPE',
      'ZONE',
      'EPOCH',
      'CALL',
      'AGE',
    ]);
    t.regex(row, /^10\.0\.0\.10 +3 +9 +1 +\d+s$/);

    const follow = ['get', 'nec', '--watch', '-o', 'jsonpath={.status.supplyEpoch}{"\\n"}'];
    const watch = spawn('kubectl', follow, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: watch.stdout });
    t.deepEqual(await once(lines, 'line'), ['1']);
    const told = once(lines, 'line');
    const edit = { ...env, EDITOR: `sed -i 's/supplyEpoch: 1/supplyEpoch: 7/'` };
    await exec('kubectl', ['edit', 'nec', '10.0.0.10'], { env: edit });
    t.deepEqual(await told, ['7']);
    watch.kill('SIGKILL');

    t.is(await kubectl('get', 'nec', '10.0.0.10', '-o', 'jsonpath={.status.supplyEpoch}'), '7');
    const error = await t.throwsAsync(
      kubectl('patch', 'nec', '10.0.0.10', '--type=merge', '-p', '{"spec":{"maxRouteENI":"3"}}'),
    );
    t.regex(error?.message ?? '', /spec\.maxRouteENI: Invalid value: "string"/);
    t.regex(await kubectl('explain', 'nec.spec.releasableIPs'), /assignmentID/);
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', EXAMPLE).catch((reason: Error) => {
      // The epoch of the example is lower now: the definition's rule holds for this way of writing too.
      t.regex(reason.message, /status\.supplyEpoch may only grow/);
    });
    t.regex(await kubectl('delete', 'nec', '10.0.0.10'), /deleted/);
    t.is(server.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com').length, 0);
  } finally {
    await server.close();
    folder.close();
  }
});
