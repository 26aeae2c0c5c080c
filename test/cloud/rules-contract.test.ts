/** The contract of layer 7: rules, redirects, certificates and targets of rules, against the simulated cloud. */
import { inspect } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import type { CertificatePort } from '../../cloud/certificates.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import type { ListenerSettings } from '../../cloud/listeners.ts';
import type { LoadBalancerTask } from '../../cloud/load-balancers.ts';
import { PrivateKey } from '../../cloud/private-key.ts';
import type { RuleSpec } from '../../cloud/rules.ts';
import { makeCertificate } from '../../runtime/make-certificate.ts';
import type { ClbSpec } from '../../sim/vpc/api/model/clb/clb-state.ts';
import { type Binding, contextOf, inProcess, overHttp, SPEC, type TestCloud } from './cloud-fixture.ts';

type CertificateSpec = Parameters<CertificatePort['upload']>[0];

type Case = {
  readonly title: string;
  readonly clb?: ClbSpec;
  readonly isOverHttp?: boolean;
  readonly run: (t: ExecutionContext, on: TestCloud) => Promise<void>;
};

const HOUR_MS = 3_600_000;
const rule = (domain: string, url = '/', more: Partial<RuleSpec> = {}): RuleSpec => ({
  domain,
  url,
  settings: {},
  ...more,
});

const CASES: readonly Case[] = [
  {
    title: 'HTTP: rules are created, listed, changed and deleted; each has targets, weights and health of its own',
    isOverHttp: true,
    run: async (t, on) => {
      const { rules, targets, listeners } = on.cloud;
      const id = await createdBalancer(on);
      const listenerId = await createdListener(on, id, 'HTTP', 80);
      const settings = {
        scheduler: 'IP_HASH',
        sessionSeconds: 86_400,
        forwardType: 'GRPC',
        healthCheck: { kind: 'HTTP', intervalSeconds: 10, http: { path: '/ready', codes: 2 } },
      } as const;
      const made = await rules.create(
        id,
        listenerId,
        [rule('*.Example.com', '/api', { settings }), rule(''), rule('www.example.com', '=/x', { isDefault: true })],
        contextOf(),
      );
      await settled(on, made.task);
      const [first = '', second = '', third = ''] = made.ruleIds;
      const listed = async () => (await listeners.list(id, contextOf()))[0]?.rules ?? [];
      const [head] = await listed();
      t.like(head, { ruleId: first, domain: '*.example.com', scheduler: 'IP_HASH', sessionSeconds: 86_400 });
      t.like(head?.healthCheck, { isOn: true, kind: 'HTTP', intervalSeconds: 10, http: { path: '/ready', codes: 2 } });
      t.is(head?.forwardType, 'GRPC');
      t.deepEqual(
        (await listed()).map(({ domain, url, isDefault }) => [domain, url, isDefault]),
        [
          ['*.example.com', '/api', false],
          ['', '/', false],
          ['www.example.com', '=/x', true],
        ],
      );
      const [ip = ''] = (await on.cloud.instances.describe(['ins-cores008'], contextOf()))[0]?.privateIps ?? [];
      const node = { listenerId, ip, port: 30_080, weight: 10, instanceId: 'ins-cores008' };
      const [a, b] = [
        { ...node, ruleId: first },
        { ...node, ruleId: second },
      ];
      t.deepEqual(await targets.register(id, [a, b], contextOf()), []);
      await settled(on, await targets.setWeights(id, [{ ...a, weight: 0 }], contextOf()));
      const weights = (await targets.list(id, [listenerId], contextOf())).map(({ ruleId, weight }) => [ruleId, weight]);
      t.deepEqual(weights, [
        [first, 0],
        [second, 10],
      ]);
      const byRule = (await targets.health([id], contextOf())).map(({ ruleId }) => ruleId);
      t.deepEqual(byRule, [first, second]);
      const found = (await targets.findByIps(SPEC.vpcId, [ip], contextOf())).map(({ ruleId }) => ruleId);
      t.deepEqual(found, [first, second]);
      t.deepEqual(await targets.deregister(id, [a], contextOf()), []);
      t.is((await targets.list(id, [listenerId], contextOf())).length, 1);
      await settled(on, await rules.modify(id, listenerId, first, { scheduler: 'WRR' }, contextOf()));
      t.like((await listed())[0], { scheduler: 'WRR', sessionSeconds: 86_400 });
      t.regex(String(await failure(rules.delete(id, listenerId, [third], contextOf()))), /default domain/);
      await settled(on, await rules.delete(id, listenerId, [third], contextOf(), '*.example.com'));
      t.deepEqual(
        (await listed()).map(({ ruleId, isDefault }) => [ruleId, isDefault]),
        [
          [first, true],
          [second, false],
        ],
      );
    },
  },
  {
    title: 'HTTPS: a certificate of the listener; with SNI one of each domain; what is in use is not deleted',
    run: async (t, on) => {
      const { certificates, listeners, rules } = on.cloud;
      const id = await createdBalancer(on);
      const [one, two] = [await uploaded(on, 'a.example.com'), await uploaded(on, 'b.example.com')];
      const plain = await createdListener(on, id, 'HTTPS', 443, { certificate: { certIds: [one] } });
      t.like((await listeners.list(id, contextOf()))[0], { certificate: { certIds: [one] }, isSni: false });
      await settled(on, await listeners.modify(id, plain, { certificate: { certIds: [two] } }, contextOf()));
      t.like((await listeners.list(id, contextOf()))[0], { certificate: { certIds: [two] } });
      const sni = await createdListener(on, id, 'HTTPS', 8443, { isSni: true });
      t.like(await failure(rules.create(id, sni, [rule('a.example.com')], contextOf())), { code: 'MissingParameter' });
      const own = { certificate: { certIds: [one] } };
      const { task } = await rules.create(id, sni, [rule('a.example.com', '/', own)], contextOf());
      await settled(on, task);
      const shown = async () =>
        (await listeners.list(id, contextOf())).find(({ listenerId }) => listenerId === sni)?.rules?.[0]?.certificate;
      t.deepEqual(await shown(), { certIds: [one] });
      const change = { certificate: { certIds: [two] } };
      await settled(on, await rules.modifyDomain(id, sni, 'a.example.com', change, contextOf()));
      t.deepEqual(await shown(), { certIds: [two] });
      t.deepEqual(
        await certificates.usersOf([one, two, 'none'], contextOf()),
        new Map([
          [one, []],
          [two, [id]],
          ['none', []],
        ]),
      );
      t.like(await failure(certificates.usersOf([], contextOf())), { code: 'BAD_REQUEST' });
      t.like(await failure(certificates.delete(two, contextOf())), {
        code: 'FailedOperation.DeleteResourceFailed',
        retry: 'never',
      });
      await certificates.delete(one, contextOf());
      t.like(await failure(certificates.describe(one, contextOf())), { retry: 'gone' });
      t.like(await failure(listeners.modify(id, sni, { isSni: false }, contextOf())), { retry: 'never' });
      await settled(on, await listeners.delete(id, [plain, sni], contextOf()));
      await certificates.delete(two, contextOf());
    },
  },
  {
    title: 'certificates: found by tag over pages, described without the key',
    isOverHttp: true,
    run: async (t, on) => {
      const { certificates } = on.cloud;
      const pair = newPair('*.example.com');
      const certId = await certificates.upload(specOf(pair, { name: 'web', tags: { owner: 'u1' } }), contextOf());
      await uploaded(on, 'other.example.com');
      const found = await certificates.find({ tag: { key: 'owner', value: 'u1' } }, contextOf());
      t.true(found.isConsistent);
      t.like(found.certificates[0], { certId, name: 'web', altNames: ['*.example.com'], algorithm: 'ECC' });
      t.is(found.certificates.length, 1);
      t.deepEqual(await certificates.usersOf([certId], contextOf()), new Map([[certId, []]]));
      const described = await certificates.describe(certId, contextOf());
      t.deepEqual(described, found.certificates[0]);
      t.true(described.notAfterMs > described.notBeforeMs);
      t.true(Math.abs(described.createdAtMs - on.host.clock.nowMs()) < HOUR_MS);
      const stranger = newPair('x.example.com');
      const mixed = specOf({ cert: pair.cert, key: stranger.key });
      t.like(await failure(certificates.upload(mixed, contextOf())), { code: 'FailedOperation.CertificateMismatch' });
      const broken = { ...specOf(pair), chain: 'no PEM' };
      t.like(await failure(certificates.upload(broken, contextOf())), { code: 'FailedOperation.CertificateInvalid' });
    },
  },
  {
    title: 'certificates: more than a page of them; the quota; one that is expired is not taken',
    clb: { limits: { certificates: 103 } },
    run: async (t, on) => {
      const { certificates, listeners } = on.cloud;
      const spec = specOf(newPair('a.example.com', on.host.clock.nowMs()));
      const ids = await Promise.all(Array.from({ length: 103 }, () => certificates.upload(spec, contextOf())));
      t.is((await certificates.find({}, contextOf())).certificates.length, 103);
      t.like(await failure(certificates.upload(spec, contextOf())), { retry: 'quota', scope: 'certificates' });
      const id = await createdBalancer(on);
      await on.host.clock.sleep(2 * HOUR_MS);
      const certificate = { certIds: ids.slice(0, 1) };
      const late = listeners.create(
        id,
        { protocol: 'HTTPS', ports: [{ port: 443, name: 'x' }], settings: { certificate } },
        contextOf(),
      );
      t.regex(String(await failure(late)), /expired/);
    },
  },
  {
    title: 'a private key is in no answer, error or log, whatever goes wrong',
    isOverHttp: true,
    run: async (t, on) => {
      const { certificates } = on.cloud;
      const pair = newPair('a.example.com');
      const secret = pair.key.split('\n')[1] ?? '';
      t.true(secret.length > 40);
      const spec = specOf(pair);
      t.true(spec.privateKey.reveal().includes(secret));
      const outputs: unknown[] = [spec, spec.privateKey, String(spec.privateKey), JSON.stringify(spec)];
      const faults = [
        { kind: 'error', code: 'InternalError' },
        { kind: 'reset', after: false },
        { kind: 'http', status: 502 },
      ] as const;
      for (const fault of faults) {
        on.host.faults.add({ fault, actions: ['UploadCertificate'], times: 1 });
        outputs.push(await failure(certificates.upload(spec, contextOf())));
      }
      outputs.push(await failure(certificates.upload({ ...spec, chain: 'no PEM' }, contextOf())));
      const certId = await certificates.upload(spec, contextOf());
      outputs.push(await certificates.describe(certId, contextOf()), await certificates.find({}, contextOf()));
      outputs.push(on.host.seen, on.host.model.state.events);
      for (const output of outputs) {
        const text = inspect(output, { depth: 20, showHidden: true, maxStringLength: null }) + JSON.stringify(output);
        t.false(text.includes(secret), text.slice(0, 200));
      }
    },
  },
  {
    title: 'redirects: created, listed, deleted; no chain, no loop, no second one; a target is not deleted',
    run: async (t, on) => {
      const { rewrites, rules } = on.cloud;
      const id = await createdBalancer(on);
      const source = await createdListener(on, id, 'HTTP', 80);
      const target = await createdListener(on, id, 'HTTP', 81);
      const from = await createdRules(on, id, source, [rule('a.example.com'), rule('b.example.com')]);
      const to = await createdRules(on, id, target, [rule('a.example.com'), rule('b.example.com')]);
      const [a = '', b = ''] = from;
      const [c = '', d = ''] = to;
      const specOfOne = (sourceRuleId: string, targetRuleId: string, sourceDomain = 'a.example.com') => ({
        sourceListenerId: source,
        targetListenerId: from.includes(targetRuleId) ? source : target,
        rewrites: [{ sourceRuleId, sourceDomain, targetRuleId, code: 302, takesUrl: true }] as const,
      });
      await settled(on, await rewrites.create(id, specOfOne(a, c), contextOf()));
      const [made] = await rewrites.list(id, contextOf());
      t.deepEqual(made, {
        ...{ sourceListenerId: source, sourceRuleId: a, targetListenerId: target, targetRuleId: c },
        ...{ code: 302, takesUrl: true, isAutomatic: false },
      });
      const exists = { code: 'InvalidParameter.RewriteAlreadyExist', retry: 'resolve' };
      t.like(await failure(rewrites.create(id, specOfOne(a, d), contextOf())), exists);
      t.like(await failure(rewrites.create(id, specOfOne(b, a, 'b.example.com'), contextOf())), exists);
      const back = { ...specOfOne(c, b), sourceListenerId: target };
      t.like(await failure(rewrites.create(id, back, contextOf())), exists);
      t.like(await failure(rewrites.create(id, specOfOne(b, d), contextOf())), { code: 'InvalidParameterValue' });
      t.regex(String(await failure(rules.delete(id, target, [c], contextOf(), 'b.example.com'))), /redirected/);
      t.like(await failure(rewrites.delete(id, [], contextOf())), { code: 'BAD_REQUEST' });
      t.truthy(made);
      if (made === undefined) return;
      const swapped = { ...made, sourceListenerId: target, targetListenerId: source };
      t.like(await failure(rewrites.delete(id, [made, swapped], contextOf())), { code: 'BAD_REQUEST' });
      await settled(on, await rewrites.delete(id, [made], contextOf()));
      t.deepEqual(await rewrites.list(id, contextOf()), []);
      t.like(await failure(rewrites.delete(id, [made], contextOf())), { retry: 'gone' });
    },
  },
  {
    title: 'wrong input: nothing is sent, or the cloud says which',
    clb: { limits: { rules: 3, targets: 1 } },
    run: async (t, on) => {
      const { rules, targets, listeners, loadBalancers } = on.cloud;
      const id = await createdBalancer(on);
      const listenerId = await createdListener(on, id, 'HTTP', 80);
      const create = (...specs: readonly RuleSpec[]) => failure(rules.create(id, listenerId, specs, contextOf()));
      t.like(await create(rule('a.example.com', '')), { code: 'InvalidParameterValue.Length' });
      t.like(await create(rule('a.example.com', 'x')), { code: 'InvalidParameter.FormatError' });
      t.like(await create(rule('a.example.com', `/${'x'.repeat(200)}`)), { code: 'InvalidParameterValue.Length' });
      t.like(await create(rule('x'.repeat(81))), { code: 'InvalidParameterValue.Length' });
      t.like(await create(rule('a..b')), { code: 'InvalidParameter.FormatError' });
      t.like(await create(rule('a.b'), rule('A.b')), { code: 'InvalidParameterValue.Duplicate', retry: 'resolve' });
      t.like(await create(...['/1', '/2', '/3', '/4'].map((url) => rule('a.b', url))), { scope: 'rules' });
      t.like(await create(rule('a.b', '/', { settings: { sessionSeconds: 29 } })), { retry: 'never' });
      t.like(await create(rule('a.b', '/', { certificate: { certIds: ['none'] } })), { retry: 'never' });
      const [ruleId = ''] = await createdRules(on, id, listenerId, [rule('a.b')]);
      const health = { kind: 'PING' };
      t.like(await failure(rules.modify(id, listenerId, ruleId, { healthCheck: health }, contextOf())), {
        retry: 'never',
      });
      const gone = { retry: 'gone' };
      t.like(await failure(rules.modify(id, listenerId, 'loc-none', {}, contextOf())), gone);
      t.like(await failure(rules.delete(id, listenerId, ['loc-none'], contextOf())), gone);
      t.like(await failure(rules.modifyDomain(id, listenerId, 'no.b', { isDefault: true }, contextOf())), gone);
      const target = { listenerId, ip: '10.0.0.9', port: 80, weight: 1 };
      t.like(await failure(targets.register(id, [target], contextOf())), gone);
      t.like(await failure(targets.register(id, [{ ...target, ruleId: 'loc-none' }], contextOf())), gone);
      t.like((await loadBalancers.quotas(contextOf())).rules, { limit: 3 });
      t.like(await failure(rules.create(id, await createdListener(on, id, 'TCP', 90), [rule('a.b')], contextOf())), {
        retry: 'never',
      });
      t.is((await listeners.list(id, contextOf())).find(({ protocol }) => protocol === 'TCP')?.rules, undefined);
      on.host.forget();
      for (const ids of [[], [''], Array.from({ length: 51 }, (_, at) => `loc-${at}`)]) {
        t.like(await failure(rules.delete(id, listenerId, ids, contextOf())), { code: 'BAD_REQUEST', retry: 'never' });
      }
      t.like(await create(), { code: 'BAD_REQUEST' });
      t.like(await failure(rules.modifyDomain(id, listenerId, '', { isDefault: true }, contextOf())), {
        code: 'BAD_REQUEST',
      });
      t.deepEqual(on.host.counts(), {});
    },
  },
  {
    title: 'changes without a token: a lost answer, a task that fails',
    run: async (t, on) => {
      const { rules, listeners, loadBalancers } = on.cloud;
      const id = await createdBalancer(on);
      const listenerId = await createdListener(on, id, 'HTTP', 80);
      on.host.faults.add({ fault: { kind: 'reset', after: true }, actions: ['CreateRule'], times: 1 });
      t.like(await failure(rules.create(id, listenerId, [rule('a.b')], contextOf())), { retry: 'resolve' });
      await on.host.clock.sleep(5_000);
      t.is((await listeners.list(id, contextOf()))[0]?.rules?.length, 1);
      on.host.faults.add({ fault: { kind: 'task', fate: 'fail' }, actions: ['CreateRule'], times: 1 });
      const { task } = await rules.create(id, listenerId, [rule('c.d')], contextOf());
      t.is((await loadBalancers.settle(task, contextOf())).kind, 'failed');
      t.is((await listeners.list(id, contextOf()))[0]?.rules?.length, 1);
    },
  },
];

function newPair(name: string, nowMs = Date.now()): { readonly cert: string; readonly key: string } {
  return makeCertificate({
    commonName: name,
    use: 'server',
    names: [name],
    notBeforeMs: nowMs - HOUR_MS,
    notAfterMs: nowMs + HOUR_MS,
  });
}

function specOf(
  pair: { readonly cert: string; readonly key: string },
  more: Partial<CertificateSpec> = {},
): CertificateSpec {
  return { name: 'x', chain: pair.cert, privateKey: new PrivateKey(pair.key), ...more };
}

async function uploaded({ cloud }: TestCloud, name: string): Promise<string> {
  return await cloud.certificates.upload(specOf(newPair(name)), contextOf());
}

async function createdBalancer({ cloud }: TestCloud): Promise<string> {
  const spec = { type: 'INTERNAL', name: 'web', vpcId: SPEC.vpcId, subnetId: 'subnet-large000' } as const;
  const outcome = await cloud.loadBalancers.settle(await cloud.loadBalancers.create(spec, contextOf()), contextOf());
  if (outcome.kind !== 'done') throw new Error(`the creation ended: ${outcome.kind}`);
  return outcome.loadBalancerIds[0] ?? '';
}

async function createdListener(
  on: TestCloud,
  id: string,
  protocol: 'TCP' | 'HTTP' | 'HTTPS',
  port: number,
  settings: ListenerSettings = {},
): Promise<string> {
  const spec = { protocol, ports: [{ port, name: `${protocol}/${port}` }], settings };
  const { listenerIds, task } = await on.cloud.listeners.create(id, spec, contextOf());
  await settled(on, task);
  return listenerIds[0] ?? '';
}

async function createdRules(
  on: TestCloud,
  id: string,
  listenerId: string,
  specs: readonly RuleSpec[],
): Promise<readonly string[]> {
  const { ruleIds, task } = await on.cloud.rules.create(id, listenerId, specs, contextOf());
  await settled(on, task);
  return ruleIds;
}

async function settled({ cloud }: TestCloud, task: LoadBalancerTask): Promise<void> {
  const outcome = await cloud.loadBalancers.settle(task, contextOf());
  if (outcome.kind !== 'done') throw new Error(`${task.action} ended: ${outcome.kind}`);
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => new Error('it went well'),
    (caught: unknown) => caught,
  );
  if (isCloudError(error)) return error;
  throw error;
}

const runOn = test.macro(async (t, binding: Binding, { clb = {}, run }: Case) => {
  const on = await binding({}, { clb });
  try {
    await on.wait(run(t, on));
  } finally {
    await on.close();
  }
});

for (const one of CASES) {
  test(`in process: ${one.title}`, runOn, inProcess, one);
  if (one.isOverHttp === true) test(`over HTTP: ${one.title}`, runOn, overHttp, one);
}
