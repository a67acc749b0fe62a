"""Installs Debian's applications in a temporary folder, each with its database and its accounts."""

import hashlib
import json
import pathlib
import shutil

from services import Database, serve_php

HOSTS = {
    "wordpress": "blog.example", "mediawiki": "wiki.example", "dokuwiki": "handbook.example",
    "phpmyadmin": "db.example", "roundcube": "mail.example", "redmine": "tracker.example",
}


class Place:
    """What an application is installed with."""

    def __init__(self, services, work, database, people, ports=None):
        self.services, self.work, self.database, self.people = services, work, database, people
        self.ports = ports or {}
        # The file that PHP and Ruby programs read the people from.
        self.accounts = work / "people.json"
        self.accounts.write_text(json.dumps(people))

    def copy(self, name, *leave_out):
        """A copy of a package's folder, without links into the system."""
        return copy(name, self.work / "www" / name, leave_out)

    def php(self, name, argv, **more):
        """Runs a PHP program that belongs to an installation."""
        return self.services.run(f"{name}-install", ["php", *argv], **more)


def copy(package, target, leave_out):
    """Copies a package's folder with what its links lead to, but for what is left out at its top."""
    source = pathlib.Path("/usr/share") / package

    def skipped(folder, names):
        return [name for name in names
                if (pathlib.Path(folder) == source and name in leave_out) or not (pathlib.Path(folder) / name).exists()]

    shutil.copytree(source, target, ignore=skipped)
    return target


def replace(file, words):
    """Replaces words in a file; each must be there."""
    text = file.read_text()
    for old, new in words:
        if old not in text:
            raise SystemExit(f"{file} has no {old}: another version of the package?")
        text = text.replace(old, new)
    file.write_text(text)


WORDPRESS = r"""<?php
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = '%(host)s';
$_SERVER['HTTPS'] = 'on';
require '%(root)s/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_new_blog_notification($title, $url, $id, $password) {}
$people = json_decode(file_get_contents('%(people)s'), true);
wp_install('Harbour Notes', $people[0]['login'], $people[0]['email'], true, '', $people[0]['password']);
update_option('permalink_structure', '/%%year%%/%%monthnum%%/%%postname%%/');
switch_theme('twentytwentyone');
update_option('siteurl', 'https://%(host)s');
update_option('home', 'https://%(host)s');
update_option('comment_previously_approved', 0);
update_option('comment_moderation', 0);
update_option('default_ping_status', 'closed');
$keys = [];
foreach ($people as $one) {
    $user = get_user_by('login', $one['login']);
    $id = $user ? $user->ID : wp_insert_user([
        'user_login' => $one['login'], 'user_pass' => $one['password'], 'user_email' => $one['email'],
        'display_name' => $one['name'], 'role' => $one['number'] < 8 ? 'administrator' : 'editor']);
    update_user_meta($id, 'wp_persisted_preferences', ['core/edit-post' => ['welcomeGuide' => false]]);
    $keys[$one['login']] = WP_Application_Passwords::create_new_application_password($id, ['name' => 'phone'])[0];
}
file_put_contents('%(keys)s', json_encode($keys));
"""


def wordpress(place):
    """A blog whose people write; gives its port."""
    root, host = place.copy("wordpress", "wp-config.php", ".htaccess"), HOSTS["wordpress"]
    place.database.create("wordpress")
    (root / "wp-content" / "uploads").mkdir(exist_ok=True)
    (root / "wp-config.php").write_text(f"""<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', '{Database.PASSWORD}');
define('DB_HOST', '127.0.0.1:{place.database.port}');
define('DB_CHARSET', 'utf8mb4');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_AUTO_UPDATE_CORE', false);
define('AUTH_KEY', 'a-throw-away-key-1');
define('SECURE_AUTH_KEY', 'a-throw-away-key-2');
define('LOGGED_IN_KEY', 'a-throw-away-key-3');
define('NONCE_KEY', 'a-throw-away-key-4');
$table_prefix = 'wp_';
if (!defined('ABSPATH')) {{ define('ABSPATH', __DIR__ . '/'); }}
require_once ABSPATH . 'wp-settings.php';
""")
    script = place.work / "wordpress.php"
    script.write_text(WORDPRESS % {"host": host, "root": root, "people": place.accounts, "keys": place.work / "wordpress-keys.json"})
    place.php("wordpress", [script])
    return serve_php(place.services, place.work, "wordpress", root)


MEDIAWIKI = r"""<?php
require '%(root)s/maintenance/Maintenance.php';
class Accounts extends Maintenance {
    public function execute() {
        foreach (json_decode(file_get_contents('%(people)s'), true) as $one) {
            $user = User::newFromName(ucfirst($one['login']));
            if ($user->getId() === 0) { $user->addToDatabase(); }
            $user->changeAuthenticationData(['username' => $user->getName(), 'password' => $one['password'],
                'retype' => $one['password']]);
            $user->setEmail($one['email']);
            $user->confirmEmail();
            $user->saveSettings();
            if ($one['number'] < 12) { MediaWiki\MediaWikiServices::getInstance()->getUserGroupManager()->addUserToGroup($user, 'sysop'); }
        }
    }
}
$maintClass = Accounts::class;
require RUN_MAINTENANCE_IF_MAIN;
"""


def mediawiki(place):
    """A wiki with its usual extensions; gives its port."""
    root, host = place.copy("mediawiki", "LocalSettings.php", "config"), HOSTS["mediawiki"]
    place.database.create("mediawiki")
    (root / "images").mkdir(exist_ok=True)
    place.php("mediawiki", [
        root / "maintenance/install.php", "--dbtype=mysql", f"--dbserver=127.0.0.1:{place.database.port}", "--dbname=mediawiki",
        "--dbuser=mediawiki", f"--dbpass={Database.PASSWORD}", f"--server=https://{host}", "--scriptpath=",
        "--pass=" + Database.PASSWORD, "--extensions=WikiEditor,Cite,ParserFunctions,CategoryTree,InputBox,Poem,TemplateData,ReplaceText",
        "--skins=Vector", "Harbour Wiki", "Keeper"], cwd=root)
    with (root / "LocalSettings.php").open("a") as settings:
        settings.write("""
$wgEnableUploads = true;
$wgRateLimits = [];
$wgPasswordAttemptThrottle = [];
$wgAccountCreationThrottle = 0;
$wgJobRunRate = 0;
$wgEnableEmail = true;
$wgMainCacheType = CACHE_ACCEL;
$wgSessionCacheType = CACHE_DB;
$wgFileExtensions = array_merge($wgFileExtensions, ['svg', 'txt', 'csv', 'pdf']);
$wgVerifyMimeType = false;
$wgDisableCounters = true;
""")
    script = root / "maintenance" / "accounts.php"
    script.write_text(MEDIAWIKI % {"root": root, "people": place.accounts})
    place.php("mediawiki", [script], cwd=root)
    return serve_php(place.services, place.work, "mediawiki", root)


def dokuwiki(place):
    """A wiki in files, with its remote interface; gives its port."""
    root, conf, data = place.copy("dokuwiki", ".htaccess"), place.work / "dokuwiki-conf", place.work / "dokuwiki-data"
    shutil.copytree("/etc/dokuwiki", conf)
    shutil.copytree("/var/lib/dokuwiki/data", data)
    replace(root / "inc/preload.php", [("'/etc/dokuwiki/'", f"'{conf}/'")])
    (conf / "local.php").write_text(f"""<?php
$conf['title'] = 'Harbour Handbook';
$conf['savedir'] = '{data}';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['disableactions'] = 'register';
$conf['remote'] = 1;
$conf['remoteuser'] = '';
$conf['plugin']['extension']['disabled'] = 1;
""")
    (conf / "acl.auth.php").write_text("# <?php exit()?>\n*\t@ALL\t8\n*\t@user\t16\n")
    (conf / "users.auth.php").write_text("# <?php exit()?>\n" + "".join(
        f"{one['login']}:{hashlib.sha1(one['password'].encode()).hexdigest()}:{one['name']}:{one['email']}:"
        f"{'admin,user' if one['number'] < 8 else 'user'}\n" for one in place.people))
    return serve_php(place.services, place.work, "dokuwiki", root)


def phpmyadmin(place):
    """The administration of the database: an account and a database for each of the people; gives its port."""
    root, temporary = place.copy("phpmyadmin"), place.work / "phpmyadmin-tmp"
    temporary.mkdir()
    config = place.work / "phpmyadmin.php"
    replace(root / "libraries/vendor_config.php",
            [("'/etc/phpmyadmin/config.inc.php'", f"'{config}'"), ("'/var/lib/phpmyadmin/tmp/'", f"'{temporary}/'")])
    config.write_text(f"""<?php
$cfg['blowfish_secret'] = 'a-throw-away-secret-of-32-bytes!';
$cfg['Servers'][1] = ['auth_type' => 'cookie', 'host' => '127.0.0.1', 'port' => '{place.database.port}',
    'compress' => false, 'AllowNoPassword' => false];
$cfg['VersionCheck'] = false;
$cfg['SendErrorReports'] = 'never';
$cfg['CheckConfigurationPermissions'] = false;
$cfg['PmaNoRelation_DisableWarning'] = true;
""")
    place.database.run("".join(
        f"CREATE USER '{one['login']}'@'127.0.0.1' IDENTIFIED BY '{one['password']}';"
        f"CREATE DATABASE shop_{one['login']};"
        f"GRANT ALL ON `shop\\_{one['login']}%`.* TO '{one['login']}'@'127.0.0.1';" for one in place.people))
    return serve_php(place.services, place.work, "phpmyadmin", root)


def roundcube(place):
    """A webmail client of the IMAP and SMTP servers in `place.ports`; gives its port."""
    root, conf = place.copy("roundcube", "installer"), place.work / "roundcube-conf"
    shutil.copytree("/etc/roundcube", conf)
    for name in ("temp", "logs"):
        (place.work / f"roundcube-{name}").mkdir()
    file = place.work / "roundcube.sqlite"
    place.php("roundcube", [
        "-r", f"$d = new PDO('sqlite:{file}'); $d->exec(file_get_contents('{root}/SQL/sqlite.initial.sql'));"])
    (conf / "config.inc.php").write_text(f"""<?php
$config['db_dsnw'] = 'sqlite:///{file}?mode=0646';
$config['imap_host'] = '127.0.0.1:{place.ports["imap"]}';
$config['smtp_host'] = '127.0.0.1:{place.ports["smtp"]}';
$config['smtp_user'] = '';
$config['smtp_pass'] = '';
$config['des_key'] = 'a-throw-away-24-byte-key';
$config['product_name'] = 'Harbour Mail';
$config['mail_domain'] = 'mail.example';
$config['plugins'] = ['archive'];
$config['skin'] = 'elastic';
$config['htmleditor'] = 1;
$config['temp_dir'] = '{place.work}/roundcube-temp';
$config['log_dir'] = '{place.work}/roundcube-logs';
$config['enable_spellcheck'] = false;
$config['session_lifetime'] = 120;
$config['use_https'] = true;
""")
    prepend = f"define('INSTALL_PATH', '{root}/');\n"
    return serve_php(place.services, place.work, "roundcube", root, prepend=prepend, env={"ROUNDCUBE_CONFIG_DIR": str(conf)})
