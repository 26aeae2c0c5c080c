import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const FOLDER = fileURLToPath(new URL('../../examples/', import.meta.url));
/** What an example must print at least; one without an entry must print something. */
const EXPECTED: Readonly<Record<string, RegExp>> = {
  'add-address.ts': /^10\.0\.1\.50\/32\nfd00::50\/128\n/,
  'add-rule.ts':
    /^EEXIST: ip rule add from 10\.0\.1\.50\/32 .*\n1536 all 327680 -> 4007\n1537 10\.0\.1\.50\/32 - -> 4007\n$/,
  'batch-routes.ts': /^added: 990\nEEXIST: ip route add /,
  'create-bridge.ts': /^ports: port0\nports afterwards: 0\n$/,
  'create-veth.ts': /^here: {2}eni0 02:00:00:00:00:01\nthere: eth0 02:00:00:00:00:02\n$/,
  'delete-link.ts': /^left: lo\n$/,
  'list-links.ts': /v0 veth up 1500/,
  'list-neighbours.ts': /^169\.254\.1\.1 02:00:00:00:00:01 permanent\n/m,
  'list-routes.ts': /^10\.0\.1\.50\/32 dev \d+ proto 84\n[\s\S]*a table that was never used: 0\n$/,
  'move-link.ts': /^here: {2}gone\nthere: eth0\n$/,
  'read-sysctl-in-netns.ts': /^links in the new namespace: 1\n$/,
  'rename-link.ts': /^new0 02:00:00:00:00:07 1400 4007 mine\n$/,
  'replace-route.ts': /^1 route, by b0\n$/,
  'route-get.ts': /^marked: {3}10\.0\.0\.0\/16\nunmarked: ENETUNREACH: ip route get 10\.0\.1\.50: /,
  'watch-links.ts': /^new v1\n[\s\S]*del v0\n$/,
};

function namespaces(): readonly string[] {
  return spawnSync('ip', ['netns', 'list'], { encoding: 'utf8' }).stdout.match(/tke-example-\w+/g) ?? [];
}

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith('.ts') && name !== 'own-netns.ts')) {
  test.serial(`examples/${file}: runs and leaves nothing behind`, (t) => {
    const before = namespaces();
    const run = spawnSync(process.execPath, [`${FOLDER}${file}`], { encoding: 'utf8', timeout: 30_000 });
    t.is(run.status, 0, run.stderr);
    t.regex(run.stdout, EXPECTED[file] ?? /./);
    t.is(run.stderr, '');
    t.deepEqual(
      namespaces().filter((name) => !before.includes(name)),
      [],
    );
  });
}

test('examples: each expectation has its example', (t) => {
  const files = readdirSync(FOLDER);
  t.deepEqual(
    Object.keys(EXPECTED).filter((name) => !files.includes(name)),
    [],
  );
});
