import { option } from '../../runtime/settings/option.ts';
import { listOf, textValue } from '../../runtime/settings/option-value.ts';
import { isEmpty, isSet, refused } from '../../runtime/settings/rule.ts';

/** Settings of a program that makes its own certificates. */
export const CERTIFICATE_OPTIONS = {
  tlsSecret: option(
    'Serving',
    'tls-secret',
    textValue(/^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/, 'NAME', "the name of a Secret, or ''"),
    '',
    "Secret of this program's namespace in which the replicas keep certificates that they make and renew themselves; it has to be there, empty at first. '' for certificates in files.",
  ),
  tlsNames: option(
    'Serving',
    'tls-names',
    listOf(textValue(/^[A-Za-z0-9:][-A-Za-z0-9.:]{0,252}$/, 'NAME', 'a DNS name or an address, such as 10.96.0.61')),
    '',
    'With --tls-secret: further names and addresses in the certificate, beside that of the Service.',
  ),
} as const;

/** Names of a certificate without a Secret to keep it in are refused. */
export const CERTIFICATE_RULE = refused(
  'tls-secret',
  'a Secret, as --tls-names is given',
  isEmpty('tls-secret'),
  isSet('tls-names'),
);
