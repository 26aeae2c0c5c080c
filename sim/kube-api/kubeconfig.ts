/** What a kubeconfig leads to. */
export type Kubeconfig = {
  readonly url: string;
  readonly token?: string;
  /** Instead of `token`: read again while the client runs. */
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly namespace?: string;
};

/** Makes a kubeconfig with one cluster and one user; JSON, which is YAML. */
export function renderKubeconfig({ url, token, tokenFile, ca, clientCert, clientKey, namespace }: Kubeconfig): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const user = {
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(clientCert === undefined ? {} : { 'client-certificate-data': base64(clientCert) }),
    ...(clientKey === undefined ? {} : { 'client-key-data': base64(clientKey) }),
  };
  // Clients take plain HTTP only from who says that there is nothing to verify.
  const plain = url.startsWith('http:') ? { 'insecure-skip-tls-verify': true } : {};
  const cluster = { server: url, ...plain, ...(ca === undefined ? {} : { 'certificate-authority-data': base64(ca) }) };
  const context = { cluster: 'test', user: 'test', ...(namespace === undefined ? {} : { namespace }) };
  return JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'test', user }],
      contexts: [{ name: 'test', context }],
      'current-context': 'test',
    },
    null,
    2,
  );
}
