import { createHash } from 'node:crypto';
import test from 'ava';
import type { JsonObject } from '../../sim/support/netns.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { succeed, succeedSilently, VERSIONS } from './support/cni-answers.ts';
import { openScenes, RULE_MODES, type ScenePod } from './support/scene.ts';

/** Versions that have CHECK, and those that have STATUS and GC. @see CNI SPEC, "Appendix: Changes" */
const WITH_CHECK: readonly string[] = ['0.4.0', '1.0.0', '1.1.0'];
const WITH_STATUS: readonly string[] = ['1.1.0'];
/** Before 1.0.0 each address says its family. */
const WITH_FAMILY: readonly string[] = ['0.3.0', '0.3.1', '0.4.0'];

/** The other layout is tried in the suite `long`. */
const MODES = partOf(RULE_MODES, (mode) => mode === 'compact');

const scenes = openScenes(
  test,
  MODES.map((ruleMode) => ({ ruleMode, nodes: [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 12 }] }] })),
);

/** What ADD must print, made from what `ip -j` shows and nothing else. */
async function expectedResult(pod: ScenePod, version: string): Promise<JsonObject> {
  const hostName = `eni${createHash('sha1').update(`${pod.namespace}.${pod.name}`).digest('hex').slice(0, 11)}`;
  const [host] = await pod.node.netns.ipJson('link', 'show', 'dev', hostName);
  const [link] = await pod.netns.ipJson('address', 'show', 'dev', pod.ifName);
  const addresses = (link?.['addr_info'] ?? []) as readonly JsonObject[];
  const address = addresses.find((item) => item['family'] === 'inet');
  const mtu = version === '1.1.0' ? { mtu: 1500 } : {};
  return {
    cniVersion: version,
    interfaces: [
      { name: hostName, mac: host?.['address'], ...mtu },
      { name: pod.ifName, mac: link?.['address'], ...mtu, sandbox: pod.netns.path },
    ],
    ips: [
      {
        ...(WITH_FAMILY.includes(version) ? { version: '4' } : {}),
        interface: 1,
        address: `${String(address?.['local'])}/${String(address?.['prefixlen'])}`,
        gateway: '169.254.1.1',
      },
    ],
    routes: [{ dst: '0.0.0.0/0', gw: '169.254.1.1' }],
  };
}

for (const ruleMode of MODES) {
  for (const version of VERSIONS) {
    test.serial(`ADD, CHECK, DEL, DEL: CNI ${version} in ${ruleMode} mode`, async (t) => {
      const { vpc, node } = scenes.get(ruleMode);
      const pod = await node.newPod();
      const conf = node.conf({ cniVersion: version });

      const added = succeed(t, await node.call('ADD', pod, { conf }));
      t.deepEqual(added, await expectedResult(pod, version));
      const address = String((added['ips'] as readonly JsonObject[])[0]?.['address']);
      t.true(
        vpc.assignedIps('eni-1').some(({ ip }) => address === `${ip}/32`),
        `${address} is one of the ENI's`,
      );
      t.true(await pod.netns.ping(vpc.outside.ip), 'the Pod reaches the outside');
      await scenes.verify(t, ruleMode);

      if (WITH_CHECK.includes(version)) {
        succeedSilently(t, await node.call('CHECK', pod, { conf: { ...conf, prevResult: added } }));
      }
      if (WITH_STATUS.includes(version)) {
        succeedSilently(t, await node.call('STATUS', undefined, { conf }));
        const valid = [{ containerID: pod.containerId, ifname: pod.ifName }];
        const gcConf = { ...conf, 'cni.dev/valid-attachments': valid };
        succeedSilently(t, await node.call('GC', undefined, { conf: gcConf }));
        t.true(await pod.netns.ping(vpc.outside.ip), 'GC leaves a valid attachment alone');
      }

      const delConf = { ...conf, prevResult: added };
      succeedSilently(t, await node.call('DEL', pod, { conf: delConf }));
      await scenes.verify(t, ruleMode);
      t.deepEqual(await pod.netns.linkNames(), ['lo']);
      succeedSilently(t, await node.call('DEL', pod, { conf: delConf }));
      await scenes.verify(t, ruleMode);
    });
  }
}

for (const version of ['0.3.0', '0.3.1']) {
  shortTest.serial(`CHECK: is refused with both version lists when the conf says ${version}`, async (t) => {
    const { node } = scenes.get('compact');
    const answer = await node.call('CHECK', await node.newPod(), { conf: node.conf({ cniVersion: version }) });
    t.deepEqual(answer.error, {
      code: 1,
      msg: `CNI version ${version} has no command CHECK`,
      details: `CHECK exists since 0.4.0; conf: [${version}]; plugin: [0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0]`,
    });
  });
}

for (const name of ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'] as const) {
  shortTest.serial(`VERSION: ${name} lists what it speaks, in the version of the caller`, async (t) => {
    const { node } = scenes.get('compact');
    for (const cniVersion of VERSIONS) {
      const answer = await node.call('VERSION', undefined, { plugin: name, conf: { cniVersion } });
      t.deepEqual(succeed(t, answer), { cniVersion, supportedVersions: ['0.2.0', ...VERSIONS] });
    }
  });
}
