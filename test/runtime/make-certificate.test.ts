import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import test from 'ava';
import { isKeyOf, makeCertificate } from '../../runtime/make-certificate.ts';
import { createTempDir } from '../support/temp-dir.ts';

const HOUR_MS = 3_600_000;
const NAMES = ['tke-eni-ip-webhook.kube-system.svc', '10.96.0.61', 'fd00::1:2', '::ffff:10.0.0.1'];
const times = { notBeforeMs: Date.now() - HOUR_MS, notAfterMs: Date.now() + HOUR_MS };
const authority = makeCertificate({ commonName: 'ours-ca', use: 'authority', ...times });
const server = makeCertificate({ commonName: 'ours', use: 'server', names: NAMES, ...times }, authority);
const client = makeCertificate({ commonName: 'system:kube-scheduler', use: 'client', ...times }, authority);

test('makeCertificate: openssl, strict, takes a server and a client for what they are', (t) => {
  const folder = createTempDir('x509');
  const verify = (cert: string, ...options: readonly string[]): string => {
    writeFileSync(folder.join('ca.crt'), authority.cert);
    writeFileSync(folder.join('one.crt'), cert);
    const argv = ['verify', '-x509_strict', '-CAfile', folder.join('ca.crt'), ...options, folder.join('one.crt')];
    return execFileSync('openssl', argv, { encoding: 'utf8', stdio: 'pipe' });
  };
  t.teardown(() => folder.close());
  for (const ip of NAMES.slice(1)) t.regex(verify(server.cert, '-purpose', 'sslserver', '-verify_ip', ip), /OK/);
  t.regex(verify(server.cert, '-purpose', 'sslserver', '-verify_hostname', NAMES[0] ?? ''), /OK/);
  t.regex(verify(client.cert, '-purpose', 'sslclient'), /OK/);
  t.throws(() => verify(client.cert, '-purpose', 'sslserver'));
  t.throws(() => verify(server.cert, '-purpose', 'sslclient'));
  t.throws(() => verify(server.cert, '-verify_hostname', 'other.kube-system.svc'));
  const { cert } = makeCertificate({ commonName: 'ours-ca', use: 'authority', ...times });
  t.throws(
    () => verify(makeCertificate({ commonName: 'x', use: 'server', ...times }).cert),
    undefined,
    'no authority signed',
  );
  t.throws(() => verify(cert), undefined, 'another authority of the same name');
});

test('makeCertificate: says what is asked for, and its key is its own', (t) => {
  const read = new X509Certificate(server.cert);
  t.is(read.subject, 'CN=ours');
  t.is(read.issuer, 'CN=ours-ca');
  t.false(read.ca);
  t.true(new X509Certificate(authority.cert).ca);
  t.true(read.checkIssued(new X509Certificate(authority.cert)));
  t.true(isKeyOf(server.key, read));
  t.false(isKeyOf(client.key, read));
  t.is(Math.floor(times.notBeforeMs / 1000), read.validFromDate.getTime() / 1000);
  t.is(Math.floor(times.notAfterMs / 1000), read.validToDate.getTime() / 1000);
  t.not(read.serialNumber, new X509Certificate(client.cert).serialNumber);
});

for (const year of [1999, 2049, 2050, 2123]) {
  test(`makeCertificate: has a time of ${year} as it is`, (t) => {
    const atMs = Date.UTC(year, 11, 31, 23, 59, 59);
    const { cert } = makeCertificate({
      commonName: 'a',
      use: 'authority',
      notBeforeMs: atMs,
      notAfterMs: atMs + 1_000,
    });
    const { validFromDate, validToDate } = new X509Certificate(cert);
    t.deepEqual([validFromDate.getTime(), validToDate.getTime()], [atMs, atMs + 1_000]);
  });
}
