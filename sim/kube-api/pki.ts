import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** A certificate with its key, in PEM, and where the files are. */
export type KeyPair = {
  readonly cert: string;
  readonly key: string;
  readonly certPath: string;
  readonly keyPath: string;
};

const run = promisify(execFile);

/** What a certificate says besides. */
type KeyPairOptions = {
  /** Default: `/CN=<name>`. */
  readonly subject?: string;
  readonly ips?: readonly string[];
  readonly dns?: readonly string[];
};

/**
 * Makes a self-signed certificate for 127.0.0.1 and localhost in a folder, by openssl; it is its own authority.
 * @see openssl-req(1)
 */
export async function makeKeyPair(folder: string, name: string, options: KeyPairOptions = {}): Promise<KeyPair> {
  const [certPath, keyPath] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)];
  const ips = ['127.0.0.1', ...(options.ips ?? [])].map((ip) => `IP:${ip}`);
  const names = [...ips, ...['localhost', ...(options.dns ?? [])].map((dns) => `DNS:${dns}`)].join(',');
  const subject = ['-subj', options.subject ?? `/CN=${name}`, '-addext', `subjectAltName=${names}`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyPath];
  await run('openssl', ['req', '-x509', ...key, '-out', certPath, '-days', '2', ...subject]);
  return { cert: readFileSync(certPath, 'utf8'), key: readFileSync(keyPath, 'utf8'), certPath, keyPath };
}

/** An authority that signs certificates of others. */
export type Authority = Pick<KeyPair, 'certPath' | 'keyPath'> & { readonly folder: string };

/** Makes an authority in a folder, by openssl. */
export async function makeAuthority(folder: string, name: string): Promise<Authority> {
  const [certPath, keyPath] = [join(folder, `${name}-ca.crt`), join(folder, `${name}-ca.key`)];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyPath];
  const use = ['-addext', 'basicConstraints=critical,CA:TRUE', '-addext', 'keyUsage=critical,keyCertSign'];
  await run('openssl', ['req', '-x509', ...key, '-out', certPath, '-days', '2', '-subj', `/CN=${name}-ca`, ...use]);
  return { certPath, keyPath, folder };
}

/** Has an authority sign a certificate for one use; it names 127.0.0.1 and localhost. */
export async function signCertificate(
  { certPath: ca, keyPath: caKey, folder }: Authority,
  name: string,
  use: 'clientAuth' | 'serverAuth',
): Promise<KeyPair> {
  const base = join(folder, `${basename(ca)}-${name.replaceAll(':', '-')}`);
  const [certPath, keyPath, requestPath, usePath] = [`${base}.crt`, `${base}.key`, `${base}.csr`, `${base}.ext`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyPath];
  await run('openssl', ['req', ...key, '-out', requestPath, '-subj', `/CN=${name}`]);
  writeFileSync(usePath, `extendedKeyUsage=${use}\nsubjectAltName=IP:127.0.0.1,DNS:localhost\n`);
  const signer = ['-CA', ca, '-CAkey', caKey, '-CAcreateserial', '-days', '2', '-extfile', usePath];
  await run('openssl', ['x509', '-req', '-in', requestPath, ...signer, '-out', certPath]);
  return { cert: readFileSync(certPath, 'utf8'), key: readFileSync(keyPath, 'utf8'), certPath, keyPath };
}
