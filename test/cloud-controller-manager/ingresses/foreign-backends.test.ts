/** Backends that a load balancer cannot lead to stop their own paths, and nothing else. */
import test from 'ava';
import { IngressWorld } from './ingress-world.ts';

const DONE_MS = 40_000;
const to = (path: string, name: string) => ({
  ...{ path, pathType: 'ImplementationSpecific' },
  backend: { service: { name, port: { number: 80 } } },
});
const RESOURCE = { resource: { apiGroup: 'k8s.example.com', kind: 'StorageBucket', name: 'b' } };

for (const direct of ['true', 'false'])
  test(`ExternalName and a resource, with direct-access ${direct}`, async (t) => {
    const world = await IngressWorld.start();
    await world.serve('web', direct === 'true' ? {} : { type: 'NodePort' });
    const external = { type: 'ExternalName', externalName: 'other.example.com', selector: undefined };
    await world.services.create('outside', { spec: { ...external, ports: [{ port: 80 }] } });
    const paths = [to('/', 'web'), to('/outside', 'outside')];
    const annotations = { 'ingress.cloud.tencent.com/direct-access': direct };
    await world.create('site', { annotations, spec: { rules: [{ http: { paths } }] } });
    await world.advance(DONE_MS);
    t.is(world.rules()['HTTP:80 /']?.length, 1);
    t.regex(world.events('BackendMissing').join(), /Service "outside" is of type ExternalName/);
    const static_ = { path: '/static', pathType: 'ImplementationSpecific', backend: RESOURCE };
    await world.patch('site', { spec: { rules: [{ http: { paths: [...paths, static_, to('/two', 'web')] } }] } });
    await world.advance(DONE_MS);
    t.deepEqual(Object.keys(world.rules()).toSorted(), ['HTTP:80 /', 'HTTP:80 /outside', 'HTTP:80 /two']);
    t.is(world.rules()['HTTP:80 /two']?.length, 1);
    t.regex(world.events('IngressRefused').join(), /path "\/static" \(a resource of kind "StorageBucket"\)/);
    t.deepEqual(world.events('IngressInvalid'), []);
    await world.stop();
  });
