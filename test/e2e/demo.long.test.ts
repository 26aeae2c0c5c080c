import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { tryRun } from '../../sim/support/run.ts';
import { listNetnsNames } from '../../sim/support/run-names.ts';

const DEMO = join(import.meta.dirname, 'demo.ts');
const PAGE = join(import.meta.dirname, '../../docs/demo.md');

/**
 * What is printed about two ways into a Pod and two networks on one node, without what differs from run to run: addresses of ENIs,
 * their ids, columns, and the node that a load balancer chose.
 */
function sectionOf(text: string): string {
  const [, section = ''] = /^(One page, two ways in[\s\S]*?)\n+Act 1: /m.exec(text) ?? [];
  // Of two Nodes that register at once either gets the first block.
  const inFirst = section.replaceAll(/192\.168\.0\.(\d+)/g, (_, host: string) => `192.168.0.${Number(host) % 64}`);
  return inFirst
    .replaceAll(/10\.0\.1\.\d+/g, 'ADDRESS')
    .replaceAll(/198\.18\.0\.\d+/g, 'VIP')
    .replaceAll(/:300\d\d\b/g, ':NODEPORT')
    .replaceAll(/client 10\.0\.0\.\d+/g, 'client NODE')
    .replaceAll(/which is n\d/g, 'which is NODE')
    .replaceAll(/eni-\w+/g, 'ENI')
    .replaceAll(/ +/g, ' ');
}

/** Every Pod of the beginning once, and all of them once more after the acts. */
const PODS_LOOKED_AT = 5 + 14;

test('demo: the whole system runs, serves a page by two load balancers, starves, is throttled, loses its leader, moves an address, and leaves nothing', async (t) => {
  t.timeout(330_000);
  const hadCniFolder = existsSync('/etc/cni');
  const { code, stdout, stderr } = await tryRun([process.execPath, DEMO], { timeoutMs: 300_000 });
  t.is(code, 0, stderr);
  const ownWays = stdout.match(/^ {2}\S+ +10\.0\.\d+\.\d+ +3 by (eni-\w+) +3 by \1$/gm) ?? [];
  t.is(ownWays.length, PODS_LOOKED_AT, 'out and back by the ENI of the address');
  t.notRegex(stdout, /LOST/);
  t.regex(stdout, /answers "hello from web-0"/);
  t.regex(stdout, /limits its link to 10Mbit/);
  // The same page by both load balancers, and whom the log of the Pod has for each.
  t.regex(stdout, /^ {2}the page +hello from web-0 +hello from web-0$/m);
  t.regex(stdout, /^ {2}log of web-0 +client 10\.0\.0\.\d +client 203\.0\.113\.10$/m);
  t.regex(stdout, /^ +which is n[12] +which is outside itself$/m);
  t.regex(stdout, /load balancers left when their Services were gone: 0$/m);
  // Source addresses: the bridge's Pod is masqueraded outside, that of an ENI is not; the node asks by the bridge's address.
  t.regex(stdout, /^ {2}gr-0 +\. +192\.168\.0\.\d+ +192\.168\.0\.\d+ +10\.0\.0\.\d+$/m);
  t.regex(stdout, /^ {2}web-1 +(10\.0\.1\.\d+) +\. +\1 +\1$/m);
  t.regex(stdout, /^ {2}n1 +192\.168\.0\.\d+ +(10\.0\.0\.\d+) +\. +\1$/m);
  t.regex(stdout, /^ {2}n1 +2 +4 +4 +\d+ +True +SupplyMet/m, 'kubectl get nec');
  t.regex(stdout, /^ {2}n2 .* False +SubnetExhausted/m);
  // ipamd learns it from a refusal, or from a description of the subnet that came first.
  t.regex(
    stdout,
    /event SubnetExhausted, nec\/n2:\s+.*(ResourceInsufficient\.Subnet|no free addresses in subnet-small000)/,
  );
  t.regex(stdout, /event FailedCreatePodSandBox, pod\/db-\d:/);
  t.regex(stdout, /Processes\s+restarted: none/);
  t.regex(stdout, /ENIs that came of it: 1$/m);
  t.regex(stdout, /rule-missing/, 'tke-eni explain names the rule that was deleted');
  t.regex(stdout, /refused as spoofed: 0$/m);
  t.regex(stdout, /^ {2}mq-0 +10\.0\.\d+\.\d+ +n1 +Retained/m, 'kubectl get vipc');
  t.regex(stdout, /Recovery: the same address, (10\.0\.\d+\.\d+), moved/);
  t.regex(stdout, /reach it\s+there:\s+yes\./);
  t.regex(stdout, /14 Pods running: 0$/m);
  t.regex(stdout, /when they were gone: 0$/m);
  t.regex(stdout, /when the Nodes were gone: 0$/m);
  t.regex(
    stdout,
    /^Seconds\n-+\n +\d+\.\d {2}VPC, API server, ipamd, two nodes\n(?: +\d+\.\d {2}.+\n)+ +\d+\.\d {2}all$/m,
  );
  t.is(sectionOf(stdout), sectionOf(readFileSync(PAGE, 'utf8')), 'docs/demo.md shows what is printed');
  const tooWide = `${stdout}\n${stderr}`.split('\n').filter((line) => line.length > 80);
  t.deepEqual(tooWide, []);
  const names = [...(await listNetnsNames()), ...readdirSync(tmpdir())];
  t.deepEqual(
    names.filter((name) => name.startsWith('tke-demo-')),
    [],
  );
  t.is(existsSync('/etc/cni'), hadCniFolder);
});
