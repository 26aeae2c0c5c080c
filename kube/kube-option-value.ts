import { textValue } from '../runtime/settings/option-value.ts';

/** A name of a Kubernetes object that is not empty. */
export const objectNameValue = textValue(
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
  'NAME',
  'the name of an object, in lower case',
);

/** A class of load balancers, of any Service API; '' for none. */
export const loadBalancerClassValue = textValue(
  /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/,
  'CLASS',
  "a class such as example.com/clb, or ''",
);
