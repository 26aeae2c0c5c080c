import test from 'ava';
import { VPC_ENI_KIND } from '../../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import { decodeVpcEni } from '../../../ipamd/direct/vpc-eni-entry.ts';
import { decodeEipClaim } from '../../../ipamd/eip/claim-book.ts';
import { withClaims } from '../../../ipamd/nec/with-claims.ts';
import { decodeClaim, decodeVip } from '../../../ipamd/records/record-facts.ts';
import { ClaimBook } from '../../../ipamd/static/claim-book.ts';
import { NecWorld } from '../support/nec-world.ts';

const API = { apiVersion: 'networking.tke.cloud.tencent.com/v1' };

/** Tells of whoever goes through all of it. */
class LookedUp extends Map<string, string> {
  walks = 0;

  override [Symbol.iterator]() {
    this.walks++;
    return super[Symbol.iterator]();
  }

  override forEach(visit: (value: string, key: string, map: Map<string, string>) => void): void {
    this.walks++;
    super.forEach(visit);
  }
}

test('ClaimBook: changes its one map of addresses, however many claims there are', (t) => {
  const book = new ClaimBook();
  const reserved = book.reservedIps();
  for (let index = 0; index < 3; index++) book.set(`d/web-${index}`, new Map(), [`10.1.0.${index}`]);
  t.is(book.reservedIps(), reserved);
  t.is(reserved.get('10.1.0.2'), 'd/web-2');
  book.set('d/web-1', new Map(), ['10.1.0.2']);
  book.set('d/web-2', new Map(), []);
  t.deepEqual(
    [...reserved],
    [
      ['10.1.0.0', 'd/web-0'],
      ['10.1.0.2', 'd/web-1'],
    ],
  );
});

test('withClaims: marks what is reserved without going through the reservations of the whole cluster', (t) => {
  const reservedIps = new LookedUp();
  reservedIps.set('10.0.1.50', 'ns/web-0');
  reservedIps.walks = 0;
  const eni = {
    eniID: 'eni-1',
    mac: '20:90:6f:00:00:01',
    state: 'Attached' as const,
    addresses: ['10.0.1.50', '10.0.1.51'].map((ip) => ({ ip, assignmentID: `of-${ip}`, state: 'Assigned' as const })),
  };
  const { status, ...view } = new NecWorld().view();
  const marked = withClaims({ ...view, status, claims: new Map(), reservedIps }, { ...status, eniInfos: [eni] });
  const [first, second] = marked.eniInfos?.[0]?.addresses ?? [];
  t.deepEqual([first?.claim, second?.claim], [{ namespace: 'ns', name: 'web-0' }, undefined]);
  t.is(reservedIps.walks, 0);
});

test('decoders of what is kept: hold no managedFields, which would be half of the memory', (t) => {
  const metadata = { name: 'web-0', namespace: 'd', uid: 'u', resourceVersion: '1', managedFields: [{ manager: 'x' }] };
  const spec = { mode: 'route-eni', type: 'Pod', ip: '10.0.0.7', claimRef: { namespace: 'd', name: 'web-0' } };
  const claim = decodeClaim({ ...API, kind: VPC_IP_CLAIM_KIND.kind, metadata, spec });
  const vip = decodeVip({ ...API, kind: VPC_IP_KIND.kind, metadata, spec });
  const eni = decodeVpcEni({ ...API, kind: VPC_ENI_KIND.kind, metadata, spec });
  const eip = decodeEipClaim({ ...API, kind: 'EIPClaim', metadata, spec: {} });
  const { managedFields: _, ...rest } = metadata;
  const kept = [claim.kept?.decoded?.object, vip.kept?.decoded?.object, eni.object, eip.claim?.object];
  t.deepEqual(
    kept.map((object) => object?.['metadata']),
    [rest, rest, rest, rest],
  );
});
