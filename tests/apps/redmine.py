"""The issue tracker, on its own application server."""

import shutil

from services import free_port

ACCOUNTS = r"""
Setting.rest_api_enabled = '1'
Setting.host_name = 'tracker.example'
Setting.protocol = 'https'
Setting.default_language = 'en'
Setting.attachment_max_size = '4096'
Setting.notified_events = []
Setting.text_formatting = 'markdown'
people = JSON.parse(File.read(ENV['PEOPLE']))
keys = {}
%w[boats harbour website warehouse].each do |name|
  project = Project.new(:name => name.capitalize, :identifier => name, :is_public => true)
  project.trackers = Tracker.all
  project.enabled_module_names = %w[issue_tracking time_tracking news documents files wiki boards calendar gantt]
  project.save!
end
people.each do |one|
  # Some names are one word.
  first, last = one['name'].split(' ', 2)
  user = User.new(:firstname => first, :lastname => last || first, :mail => one['email'], :language => 'en', :admin => one['number'] < 8)
  user.login = one['login']
  user.password = user.password_confirmation = one['password']
  user.must_change_passwd = false
  user.save!
  keys[one['login']] = user.api_key
  Project.all.each { |project| Member.create!(:project => project, :principal => user, :roles => [Role.givable.first]) }
end
File.write(ENV['KEYS'], keys.to_json)
"""


def redmine(place):
    """A tracker with four projects of which everybody is a manager; gives its port."""
    work = place.work
    root = place.copy("redmine", "instances", "Gemfile.lock")
    shutil.copy("/var/lib/redmine/Gemfile.lock", root / "Gemfile.lock")
    instance = root / "instances" / "default"
    for folder in [root / "tmp", root / "files"] + [instance / name for name in ("config", "tmp/cache", "log", "files")]:
        folder.mkdir(parents=True, exist_ok=True)
    settings = f"production:\n  adapter: sqlite3\n  database: {work}/redmine.sqlite\n  timeout: 20000\n  pool: 10\n"
    for folder in (root / "config", instance / "config"):
        (folder / "database.yml").write_text(settings)
    (instance / "config" / "secret_key.txt").write_text("a-throw-away-secret" * 4)
    env = {"RAILS_ENV": "production", "REDMINE_LANG": "en", "RAILS_SERVE_STATIC_FILES": "1",
           "PEOPLE": str(place.accounts), "KEYS": str(work / "redmine-keys.json")}
    script = work / "redmine-accounts.rb"
    script.write_text(ACCOUNTS)
    for task in ("db:migrate", "redmine:load_default_data"):
        place.services.run("redmine-install", ["rake", task], env=env, cwd=root)
    place.services.run("redmine-install", ["ruby", "bin/rails", "runner", script], env=env, cwd=root)
    port = free_port()
    # One request at a time: its Markdown library does not stand threads, and SQLite no second writer.
    place.services.start("redmine", ["puma", "-e", "production", "-t", "1:1", "-w", "0", "-b", f"tcp://127.0.0.1:{port}"], port,
                         env=env, cwd=root, seconds=240)
    return port
